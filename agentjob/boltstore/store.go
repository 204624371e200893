package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// Options are what a store may be given. The zero value is good.
type Options struct {
	// Keys seal what holds chat text. Open asks for them once and waits up to half
	// a minute. Nil is a key file beside the store, its path with ".key" appended. It
	// is made with a new key, unless records are there already that another key has sealed.
	Keys secret.KeySource

	// MaxSize bounds the file, in bytes. Zero is 1 GiB, the least is 32 MiB. A store that is half
	// full takes no new claims, and the rest is for the replies and ends of those it has: a write that
	// is refused returns an error that matches [agentjob.ErrStoreFull]. Deletes always work.
	// Compacting needs the size of what is kept once more on the disk, for a moment.
	MaxSize int64
}

const keysWait = 30 * time.Second

// A Store is an [agentjob.Store] in one bbolt file. Make it with [Open]. It is
// safe for concurrent use.
type Store struct {
	home   *home
	sealer *secret.Sealer
	writer *writer

	// mu is held for reading while an operation enters the queue. So
	// whoever holds it for writing knows that no more will come.
	mu     sync.RWMutex
	closed bool
	leases map[string]*lease
}

var _ agentjob.Store = (*Store)(nil)

// Open opens the store, or makes it and its folder. It reads the whole file, to find damage before
// anything is claimed. The error matches [agentjob.ErrLeaseHeld] if another has the store
// open for longer than a second, [agentjob.ErrStoreDamaged] if it can't be used, as a [*DamagedError],
// and [secret.ErrKeyUnknown] if its key file is gone.
func Open(path string, opts Options) (_ *Store, err error) {
	maxSize, err := opts.maxSize()
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", path, err)
	}
	h, err := enter(path)
	if err != nil {
		return nil, err
	}
	h.maxSize = maxSize
	defer func() {
		if err != nil {
			err = errors.Join(err, h.leave())
		}
	}()
	found, err := h.look()
	if err != nil {
		return nil, err
	}
	sealer, err := h.sealer(opts.Keys, found)
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", h.path, err)
	}
	stale := found.stale
	if stale { // left by a crash
		err := h.compactClosed()
		if errors.Is(err, errUnsynced) {
			return nil, fmt.Errorf("opening the store %s: %w", h.path, err)
		}
		stale = err != nil // the writer tries again
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	return &Store{home: h, sealer: sealer, writer: newWriter(h, stale), leases: map[string]*lease{}}, nil
}

func (h *home) sealer(keys secret.KeySource, found *contents) (*secret.Sealer, error) {
	if keys == nil {
		name := h.path + ".key"
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) && found.sealed > 0 {
			return nil, fmt.Errorf("%w: the key file %s is gone, and it sealed the text of %d records: restore it from a backup, "+
				"or go on without the records by calling boltstore.StartAfresh", secret.ErrKeyUnknown, name, found.sealed)
		}
		keys = secret.FileKeys(name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), keysWait)
	defer cancel()
	return secret.NewSealer(ctx, keys)
}

var errClosed = errors.New("the store is closed")

// Acquire takes the lease of a provider. It doesn't wait.
func (s *Store) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquiring provider %q: %w", provider, err)
	}
	if err := checkKey(provider); err != nil {
		return nil, fmt.Errorf("acquiring provider %q: %w", provider, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.leases[provider] != nil {
		return nil, fmt.Errorf("%w: one in this process serves %q; stop it first", agentjob.ErrLeaseHeld, provider)
	}
	l := &lease{store: s, provider: provider, lost: make(chan struct{})}
	s.leases[provider] = l
	return l, nil
}

// Provider returns the provider that a key's fingerprint was bound to, or "".
func (s *Store) Provider(ctx context.Context, fingerprint string) (provider string, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return "", errClosed
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	err = s.home.view(func(tx *bolt.Tx) error {
		provider = string(tx.Bucket([]byte(fingerprintsBucket)).Get([]byte(fingerprint)))
		return nil
	})
	return provider, err
}

// BindProvider durably binds a key's fingerprint to a provider.
func (s *Store) BindProvider(ctx context.Context, fingerprint, provider string) error {
	if err := checkKey(fingerprint); err != nil {
		return fmt.Errorf("binding a fingerprint: %w", err)
	}
	closed := func() error {
		if s.closed {
			return errClosed
		}
		return nil
	}
	return s.do(ctx, closed, &op{action: put, place: place{bucket: fingerprintsBucket, key: fingerprint}, value: []byte(provider), leaves: forClaims})
}

// Close gives back all leases, makes everything durable, compacts the file and closes it. If
// late writes are still not on disk, the error says which, and it says if compacting
// failed. It may be called again, then doing nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.lose()
	s.mu.Unlock()
	close(s.writer.queue)
	<-s.writer.finished
	return errors.Join(s.writer.left, s.home.retire(s.writer.compactor.stale))
}

// lose takes all leases from their holders. It needs mu.
func (s *Store) lose() {
	for _, l := range slices.Collect(maps.Values(s.leases)) {
		close(l.lost)
		l.end()
	}
}

// do queues an operation, unless refused returns an error, and waits for
// its result; a lazy one it only queues.
func (s *Store) do(ctx context.Context, refused func() error, o *op) error {
	if err := s.enqueue(ctx, refused, o); err != nil || o.lazy {
		return err
	}
	select {
	case err := <-o.done:
		if errors.Is(err, agentjob.ErrLeaseLost) { // the store isn't ours any more
			s.mu.Lock()
			s.lose()
			s.mu.Unlock()
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) enqueue(ctx context.Context, refused func() error, o *op) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := refused(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.lazy = o.lazy && !s.writer.failing.Load(); !o.lazy {
		o.done = make(chan error, 1)
	}
	select {
	case s.writer.queue <- o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkKey refuses what bbolt can't use as a key, before it is in a transaction.
func checkKey(key string) error {
	if key == "" || len(key) > bolt.MaxKeySize {
		return fmt.Errorf("an id must have 1 to %d bytes, not %d", bolt.MaxKeySize, len(key))
	}
	return nil
}
