package agentjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// tombstone is how long an ended task is remembered after its deadline, so that a
	// repeated claim is not run again.
	tombstone = 24 * time.Hour
	// assumedDeadline stands in where the platform did not tell: its default.
	assumedDeadline = 30 * time.Minute
	housekeeping    = time.Hour
	// storeRetry bounds the wait between two tries of a store that fails. It is short: a try costs
	// nobody but this machine, and customers wait.
	storeRetry = 2 * time.Second
)

// A ledger is what a worker knows of its tasks: the durable records behind a
// lease, and in memory which task is in which state.
type ledger struct {
	w      *Worker
	lease  Lease
	gate   *gate
	lost   func(error) // called when the lease is gone
	failed bell        // rung when the store begins to fail

	mu      sync.Mutex
	known   map[string]State
	ended   map[string]grave
	owed    map[string]Record // ended records that could not be written yet
	stuck   int               // puts that have failed and are tried again
	proven  bool              // the store took a durable write, and none has failed since
	failing bool              // one failed, and what it left isn't all written yet
}

// A grave is an ended record in memory, without text, and whether the text of a reply is still in
// the store.
type grave struct {
	Record
	text bool
}

func buried(rec Record) grave {
	text := rec.Content.hasText()
	rec.Content = rec.Content.withoutText()
	return grave{rec, text}
}

func newLedger(w *Worker, lease Lease, gate *gate, lost func(error), fails bell) *ledger {
	return &ledger{
		w: w, lease: lease, gate: gate, lost: lost, failed: fails,
		known: map[string]State{}, ended: map[string]grave{}, owed: map[string]Record{},
	}
}

// load reads all records and returns those that are not ended.
func (l *ledger) load(ctx context.Context) (open []Record, err error) {
	for rec, err := range l.lease.Records(ctx) {
		if err != nil {
			return nil, fmt.Errorf("agentjob: read the records: %w", err)
		}
		l.known[rec.TaskID] = rec.State
		if rec.State == StateEnded {
			l.ended[rec.TaskID] = buried(rec)
		} else {
			open = append(open, rec)
		}
	}
	return open, nil
}

// claim notes a task that was handed out; false means that it is known already.
func (l *ledger) claim(taskID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.known[taskID]; ok {
		return false
	}
	l.known[taskID] = ""
	return true
}

// put makes rec durable, and keeps trying while the store fails, during which
// nothing is claimed. It gives up when ctx is done or the lease is lost.
func (l *ledger) put(ctx context.Context, rec Record) error {
	l.mu.Lock()
	from := l.known[rec.TaskID]
	l.mu.Unlock()
	if !from.CanBecome(rec.State) {
		return fmt.Errorf("agentjob: task %q can't go from %q to %q", rec.TaskID, from, rec.State)
	}
	err := l.lease.Put(ctx, rec)
	if err != nil {
		err = l.insist(ctx, rec, err)
	}
	switch {
	case err == nil:
		l.stored(rec)
		return nil
	case errors.Is(err, ErrLeaseLost):
		l.lost(err)
		return err
	}
	return fmt.Errorf("agentjob: record task %q as %s: %w", rec.TaskID, rec.State, errors.Join(context.Cause(ctx), err))
}

// insist repeats a put that failed with err until it works, the lease is lost or ctx is done.
func (l *ledger) insist(ctx context.Context, rec Record, err error) error {
	l.add(1)
	defer l.add(-1)
	for n := 1; err != nil && !errors.Is(err, ErrLeaseLost) && ctx.Err() == nil; n++ {
		l.fails(rec.TaskID, err)
		if sleep(ctx, min(backoff(n), storeRetry)) == nil {
			err = l.lease.Put(ctx, rec)
		}
	}
	return err
}

func (l *ledger) add(stuck int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stuck += stuck
}

// settle records an ended task. It does not wait for a store that fails: what it
// owes is written as soon as that works again. Until then the record on disk
// says less than is true, which a restart makes good: a saved reply is sent again with
// the same bytes, a claimed task is reported and not run.
func (l *ledger) settle(ctx context.Context, rec Record) error {
	err := l.lease.Put(ctx, rec)
	switch {
	case err == nil:
		l.stored(rec)
	case errors.Is(err, ErrLeaseLost):
		l.lost(err)
		return err
	default:
		l.mu.Lock()
		l.known[rec.TaskID] = StateEnded
		l.owed[rec.TaskID] = rec
		l.mu.Unlock()
		l.fails(rec.TaskID, err)
	}
	return nil
}

// pay writes what is owed.
func (l *ledger) pay(ctx context.Context) error {
	l.mu.Lock()
	owed := slices.Collect(maps.Values(l.owed))
	l.mu.Unlock()
	for _, rec := range owed {
		if err := l.lease.Put(ctx, rec); err != nil {
			return err
		}
		l.stored(rec)
	}
	return nil
}

// stored notes a write that worked. One of an ended record may be lazy, so only the
// others prove that the store works.
func (l *ledger) stored(rec Record) {
	l.mu.Lock()
	l.known[rec.TaskID] = rec.State
	if rec.State == StateEnded {
		l.ended[rec.TaskID] = buried(rec)
		delete(l.owed, rec.TaskID)
	}
	l.mu.Unlock()
	if rec.State != StateEnded {
		l.works()
	}
}

// fails shuts the gate after a write that did not work.
func (l *ledger) fails(taskID string, err error) {
	l.mu.Lock()
	first := !l.failing
	l.failing, l.proven = true, false
	l.gate.set(storeFails, true, err) // under the lock, so that the gate hears it in this order
	l.mu.Unlock()
	if !first {
		return
	}
	l.w.emit(Event{Kind: EventStoreFail, TaskID: taskID, Err: err})
	l.failed.ring()
}

// works notes a durable write that worked. It opens the gate again unless others still wait: a
// disk may have room for a small record and none for the reply that a task waits to save.
func (l *ledger) works() {
	l.mu.Lock()
	rest := l.stuck > 0 || len(l.owed) > 0
	healed := l.failing && !rest
	if !rest {
		l.proven, l.failing = true, false
		l.gate.set(storeFails, false, nil)
	}
	l.mu.Unlock()
	if healed {
		l.w.emit(Event{Kind: EventStoreOK})
	}
}

// isProven reports whether the store's last durable write worked and nothing waits to be written.
func (l *ledger) isProven() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proven
}

// forget drops what is past its time: the text of refused replies after the
// retention, tombstones 24 hours after the deadline, or after the end if that came later, as it does
// when a worker was down for days or the clock was set forward.
func (l *ledger) forget(ctx context.Context, now time.Time) {
	for _, g := range l.graves() {
		keepText := g.text && now.Before(g.EndedAt.Add(l.w.cfg.Retention))
		var err error
		switch {
		case keepText:
		case !now.Before(g.deadline().Add(tombstone)) && !now.Before(g.EndedAt.Add(tombstone)):
			if err = l.lease.Delete(ctx, g.TaskID); err == nil {
				l.drop(g.TaskID)
			}
		case g.text:
			if err = l.lease.Put(ctx, g.Record); err == nil {
				l.stored(g.Record)
			}
		}
		if errors.Is(err, ErrLeaseLost) {
			l.lost(err)
			return
		}
		if err != nil {
			if ctx.Err() == nil {
				l.fails(g.TaskID, err)
			}
			return
		}
	}
}

func (l *ledger) drop(taskID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, taskID)
	delete(l.ended, taskID)
}

func (l *ledger) graves() []grave {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.ended))
}

// deadline returns the record's deadline, or the platform's default if that was never learnt.
func (r Record) deadline() time.Time {
	if r.Deadline.IsZero() {
		return r.ClaimedAt.Add(assumedDeadline)
	}
	return r.Deadline
}
