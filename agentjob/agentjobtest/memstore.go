package agentjobtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// A Store is an [agentjob.Store] in memory, for tests. It keeps its records
// encoded, as stores on disk do, and survives what a test calls a crash. Make it
// with [NewStore]. It is safe for concurrent use.
type Store struct {
	sealer *secret.Sealer

	mu        sync.Mutex
	records   map[string]map[string][]byte // by provider and task
	leases    map[string]*lease
	providers map[string]string // by fingerprint
	onPut     func(agentjob.Record) error
	full      error // what writes fail with
}

var _ agentjob.Store = (*Store)(nil)

// NewStore returns an empty store.
func NewStore() *Store {
	sealer, err := secret.NewSealer(context.Background(), secret.KeyFunc(func(context.Context) ([]secret.Key, error) {
		return []secret.Key{secret.NewKey()}, nil
	}))
	if err != nil {
		panic(fmt.Sprintf("agentjobtest: a new key can't be used: %v", err)) // can't happen
	}
	return &Store{
		sealer:    sealer,
		records:   map[string]map[string][]byte{},
		leases:    map[string]*lease{},
		providers: map[string]string{},
	}
}

// Acquire takes the lease of a provider.
func (s *Store) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if provider == "" {
		return nil, errors.New("a lease needs a provider")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[provider] != nil {
		return nil, fmt.Errorf("provider %q: %w", provider, agentjob.ErrLeaseHeld)
	}
	l := &lease{store: s, provider: provider, lost: make(chan struct{})}
	s.leases[provider] = l
	return l, nil
}

// Provider returns the provider bound to a fingerprint.
func (s *Store) Provider(ctx context.Context, fingerprint string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.providers[fingerprint], ctx.Err()
}

// BindProvider binds a fingerprint to a provider.
func (s *Store) BindProvider(ctx context.Context, fingerprint, provider string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full != nil {
		return s.full
	}
	s.providers[fingerprint] = provider
	return nil
}

// Crash does what the death of the process does: every lease is gone, so that
// a new worker can acquire it. The old worker isn't told: its Lost
// channels stay open, but what it still writes fails with [agentjob.ErrLeaseLost].
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.leases)
}

// LoseLease takes the provider's lease away and tells its holder by Lost. It
// does nothing if nobody holds it.
func (s *Store) LoseLease(provider string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[provider]; l != nil {
		close(l.lost)
		delete(s.leases, provider)
	}
}

// FailPuts makes every Put and BindProvider return err, for example
// [syscall.ENOSPC], and change nothing; nil ends that.
func (s *Store) FailPuts(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = err
}

// OnPut calls hook before each Put. An error from it is what Put returns,
// nothing being changed then. The hook may block. Nil removes it.
func (s *Store) OnPut(hook func(agentjob.Record) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onPut = hook
}

// Records returns the provider's records, by task id. It needs no lease.
func (s *Store) Records(provider string) []agentjob.Record {
	records, err := s.snapshot(provider)
	if err != nil {
		panic(fmt.Sprintf("agentjobtest: the store can't read its own record: %v", err))
	}
	return records
}

func (s *Store) snapshot(provider string) ([]agentjob.Record, error) {
	s.mu.Lock()
	encoded := slices.Collect(maps.Values(s.records[provider])) // values are never changed in place
	s.mu.Unlock()
	records := make([]agentjob.Record, 0, len(encoded))
	for _, data := range encoded {
		rec, err := agentjob.DecodeRecord(data, s.sealer)
		if err != nil {
			return nil, err
		}
		records = append(records, rec)
	}
	slices.SortFunc(records, func(a, b agentjob.Record) int { return cmp.Compare(a.TaskID, b.TaskID) })
	return records, nil
}

type lease struct {
	store    *Store
	provider string
	lost     chan struct{}
}

func (l *lease) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		records, err := l.store.snapshot(l.provider)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			yield(agentjob.Record{}, err)
			return
		}
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (l *lease) Put(ctx context.Context, rec agentjob.Record) error {
	if rec.Provider != l.provider {
		return fmt.Errorf("a record of provider %q in the lease of %q", rec.Provider, l.provider)
	}
	data, err := agentjob.EncodeRecord(rec, l.store.sealer)
	if err != nil {
		return err
	}
	l.store.mu.Lock()
	hook, err := l.store.onPut, l.store.full
	l.store.mu.Unlock()
	if err == nil && hook != nil {
		err = hook(rec)
	}
	if err != nil {
		return fmt.Errorf("putting task %q: %w", rec.TaskID, err)
	}
	return l.change(ctx, func(records map[string][]byte) { records[rec.TaskID] = data })
}

func (l *lease) Delete(ctx context.Context, taskID string) error {
	return l.change(ctx, func(records map[string][]byte) { delete(records, taskID) })
}

func (l *lease) change(ctx context.Context, do func(records map[string][]byte)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[l.provider] != l {
		return fmt.Errorf("provider %q: %w", l.provider, agentjob.ErrLeaseLost)
	}
	if s.records[l.provider] == nil {
		s.records[l.provider] = map[string][]byte{}
	}
	do(s.records[l.provider])
	return nil
}

func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Close() error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.leases[l.provider] == l {
		delete(l.store.leases, l.provider)
	}
	return nil
}
