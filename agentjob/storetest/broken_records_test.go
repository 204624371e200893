package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// losesLate drops what may be durable later.
type losesLate struct{ agentjob.Lease }

func (l losesLate) Put(ctx context.Context, rec agentjob.Record) error {
	if rec.State == agentjob.StateEnded {
		return nil
	}
	return l.Lease.Put(ctx, rec)
}

type emptyIsNil struct{ agentjob.Lease }

func (l emptyIsNil) Put(ctx context.Context, rec agentjob.Record) error {
	if len(rec.Content.Response) == 0 {
		rec.Content.Response = nil
	}
	return l.Lease.Put(ctx, rec)
}

type seconds struct{ agentjob.Lease }

func (l seconds) Put(ctx context.Context, rec agentjob.Record) error {
	rec.ClaimedAt = rec.ClaimedAt.Truncate(time.Second)
	return l.Lease.Put(ctx, rec)
}

// tornReads reads twice, with two writes in between, and mixes the records.
type tornReads struct {
	agentjob.Lease
	wrote chan struct{}
}

func (l tornReads) Put(ctx context.Context, rec agentjob.Record) error {
	defer func() {
		select {
		case l.wrote <- struct{}{}:
		default:
		}
	}()
	return l.Lease.Put(ctx, rec)
}

func (l tornReads) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		first := map[string]agentjob.Record{}
		for rec, err := range l.Lease.Records(ctx) {
			if err != nil {
				yield(rec, err)
				return
			}
			first[rec.TaskID] = rec
		}
		for range 6 { // three rounds of the writer
			select {
			case <-l.wrote:
			case <-ctx.Done():
			}
		}
		for rec, err := range l.Lease.Records(ctx) {
			if err == nil && rec.TaskID == "second" {
				first[rec.TaskID] = rec
			}
		}
		for rec := range maps.Values(first) {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

type cutsIDs struct{ agentjob.Lease }

func (l cutsIDs) Put(ctx context.Context, rec agentjob.Record) error {
	rec.TaskID, _, _ = strings.Cut(rec.TaskID, "\x00")
	return l.Lease.Put(ctx, rec)
}

// merges updates only the fields that a record has.
type merges struct{ agentjob.Lease }

func (l merges) Put(ctx context.Context, rec agentjob.Record) error {
	for old, err := range l.Records(ctx) {
		if err == nil && old.TaskID == rec.TaskID && rec.Content.IsZero() {
			rec.Content = old.Content
		}
	}
	return l.Lease.Put(ctx, rec)
}

// takesAll puts everything under its own provider.
type takesAll struct{ agentjob.Lease }

func (l takesAll) Put(ctx context.Context, rec agentjob.Record) error {
	rec.Provider = provider
	return l.Lease.Put(ctx, rec)
}

// sharesBytes yields the caller's own bytes.
type sharesBytes struct {
	agentjob.Lease
	content agentjob.Content
}

func (l *sharesBytes) Put(ctx context.Context, rec agentjob.Record) error {
	l.content = rec.Content
	return l.Lease.Put(ctx, rec)
}

func (l *sharesBytes) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		for rec, err := range l.Lease.Records(ctx) {
			rec.Content = l.content
			if !yield(rec, err) {
				return
			}
		}
	}
}

// deletesFirst replaces a record in two steps.
type deletesFirst struct{ agentjob.Lease }

func (l deletesFirst) Put(ctx context.Context, rec agentjob.Record) error {
	if err := l.Delete(ctx, rec.TaskID); err != nil {
		return err
	}
	return l.Lease.Put(ctx, rec)
}

// deletesByWriting needs space to delete.
type deletesByWriting struct{ agentjob.Lease }

func (l deletesByWriting) Delete(ctx context.Context, taskID string) error {
	if err := l.Put(ctx, agentjob.Record{Provider: provider, TaskID: taskID, State: agentjob.StateEnded}); err != nil {
		return err
	}
	return l.Lease.Delete(ctx, taskID)
}

type errsOnAbsent struct{ agentjob.Lease }

func (l errsOnAbsent) Delete(ctx context.Context, taskID string) error {
	for rec, err := range l.Records(ctx) {
		if err == nil && rec.TaskID == taskID {
			return l.Lease.Delete(ctx, taskID)
		}
	}
	return errors.New("no such record")
}

// prefixes yields the records of all providers whose names begin with the lease's.
type prefixes struct {
	agentjob.Store
	leases map[string]agentjob.Lease
}

func (s *prefixes) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	s.leases[provider] = lease
	return prefixed{lease, s, provider}, nil
}

type prefixed struct {
	agentjob.Lease
	store  *prefixes
	prefix string
}

func (l prefixed) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		for provider, lease := range l.store.leases {
			if !strings.HasPrefix(provider, l.prefix) {
				continue
			}
			for rec, err := range lease.Records(ctx) {
				if !yield(rec, err) {
					return
				}
			}
		}
	}
}

// yieldsLocked holds its lock while it yields.
type yieldsLocked struct {
	agentjob.Lease
	mu sync.Mutex
}

func (l *yieldsLocked) Put(ctx context.Context, rec agentjob.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Lease.Put(ctx, rec)
}

func (l *yieldsLocked) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.Lease.Records(ctx)(yield)
	}
}

// unreadableOne can't read the first record that it finds: a good store, with one damaged.
type unreadableOne struct{ agentjob.Lease }

func (l unreadableOne) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		for range l.Lease.Records(ctx) {
			yield(agentjob.Record{}, fmt.Errorf("%w: a record was cut", agentjob.ErrStoreDamaged))
			return
		}
	}
}

// skipsErrors takes what it can't read for nothing.
type skipsErrors struct{ agentjob.Lease }

func (l skipsErrors) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		for rec, err := range l.Lease.Records(ctx) {
			if err == nil && !yield(rec, nil) {
				return
			}
		}
	}
}

// losesBusy drops a write that comes while another is under way.
type losesBusy struct {
	agentjob.Lease
	busy sync.Mutex
}

func (l *losesBusy) Put(ctx context.Context, rec agentjob.Record) error {
	if !l.busy.TryLock() {
		return nil
	}
	defer l.busy.Unlock()
	runtime.Gosched() // let others come
	return l.Lease.Put(ctx, rec)
}
