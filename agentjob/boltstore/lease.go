package boltstore

import (
	"context"
	"fmt"
	"iter"

	bolt "go.etcd.io/bbolt"

	"github.com/agentjob/agentjob-go/agentjob"
)

type lease struct {
	store    *Store
	provider string
	lost     chan struct{}
	closed   bool // under store.mu
}

func (l *lease) refused() error {
	if l.closed {
		return fmt.Errorf("provider %q: %w: it was closed", l.provider, agentjob.ErrLeaseLost)
	}
	return nil
}

// end needs store.mu.
func (l *lease) end() {
	l.closed = true
	delete(l.store.leases, l.provider)
}

func (l *lease) place(taskID string) place { return place{providersBucket, l.provider, taskID} }

func (l *lease) Put(ctx context.Context, rec agentjob.Record) error {
	if rec.Provider != l.provider {
		return fmt.Errorf("putting task %q: it is of provider %q and the lease of %q", rec.TaskID, rec.Provider, l.provider)
	}
	if err := checkKey(rec.TaskID); err != nil {
		return fmt.Errorf("putting a task: %w", err)
	}
	data, err := agentjob.EncodeRecord(rec, l.store.sealer)
	if err != nil {
		return err
	}
	if len(data) > bolt.MaxValueSize {
		return fmt.Errorf("putting task %q: the record is too large: %d bytes", rec.TaskID, len(data))
	}
	err = l.store.do(ctx, l.refused, &op{
		action: put, place: l.place(rec.TaskID), value: data, leaves: shares[rec.State], lazy: rec.State == agentjob.StateEnded,
	})
	if err != nil {
		return fmt.Errorf("putting task %q: %w", rec.TaskID, err)
	}
	return nil
}

func (l *lease) Delete(ctx context.Context, taskID string) error {
	err := l.store.do(ctx, l.refused, &op{action: remove, place: l.place(taskID), lazy: true})
	if err != nil {
		return fmt.Errorf("deleting task %q: %w", taskID, err)
	}
	return nil
}

// Records yields from a copy and no open transaction: a Put in the middle of
// an iteration would wait for its end if the file has to grow.
func (l *lease) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		encoded, err := l.snapshot(ctx)
		if err != nil {
			yield(agentjob.Record{}, fmt.Errorf("reading the records of provider %q: %w", l.provider, err))
			return
		}
		for taskID, data := range encoded {
			rec, err := agentjob.DecodeRecord(data, l.store.sealer)
			if err == nil && (rec.TaskID != taskID || rec.Provider != l.provider) {
				err = fmt.Errorf("%w: the record of task %q is in the place of task %q", agentjob.ErrStoreDamaged, rec.TaskID, taskID)
			}
			if err != nil {
				yield(agentjob.Record{}, fmt.Errorf("reading the records of provider %q: %w", l.provider, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (l *lease) snapshot(ctx context.Context) (map[string][]byte, error) {
	if err := l.store.do(ctx, l.refused, &op{place: l.place("")}); err != nil {
		return nil, err
	}
	l.store.mu.RLock()
	defer l.store.mu.RUnlock()
	if err := l.refused(); err != nil {
		return nil, err
	}
	encoded := map[string][]byte{}
	err := l.store.home.view(func(tx *bolt.Tx) error {
		bucket := l.place("").in(tx)
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(taskID, data []byte) error {
			encoded[string(taskID)] = append([]byte(nil), data...)
			return ctx.Err()
		})
	})
	return encoded, err
}

func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Close() error {
	s := l.store
	s.mu.Lock()
	if l.closed {
		s.mu.Unlock()
		return nil
	}
	l.end()
	flush := &op{place: l.place(""), done: make(chan error, 1)}
	s.writer.queue <- flush // doesn't wait long: the writer never stops emptying it
	s.mu.Unlock()
	return <-flush.done
}
