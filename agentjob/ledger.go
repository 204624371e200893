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
)

// A ledger is what a worker knows of its tasks: the durable records behind a
// lease, and in memory which task is in which state.
type ledger struct {
	w     *Worker
	lease Lease
	gate  *gate
	lost  func(error) // called when the lease is gone

	mu      sync.Mutex
	known   map[string]State
	ended   map[string]grave
	owed    map[string]Record // ended records that could not be written yet
	failing bool              // the last write did not work
}

// A grave is an ended record in memory: its envelope, and whether the text of a
// reply is still in the store.
type grave struct {
	Record
	text bool
}

func buried(rec Record) grave {
	text := !rec.Content.IsZero()
	rec.Content = Content{}
	return grave{rec, text}
}

func newLedger(w *Worker, lease Lease, gate *gate, lost func(error)) *ledger {
	return &ledger{w: w, lease: lease, gate: gate, lost: lost, known: map[string]State{}, ended: map[string]grave{}, owed: map[string]Record{}}
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
	for n := 1; ; n++ {
		err := l.lease.Put(ctx, rec)
		if err == nil {
			l.stored(rec)
			return nil
		}
		if errors.Is(err, ErrLeaseLost) {
			l.lost(err)
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("agentjob: record task %q as %s: %w", rec.TaskID, rec.State, errors.Join(context.Cause(ctx), err))
		}
		l.fails(rec.TaskID, err)
		if cause := sleep(ctx, backoff(n)); cause != nil {
			return fmt.Errorf("agentjob: record task %q as %s: %w", rec.TaskID, rec.State, errors.Join(cause, err))
		}
	}
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
	l.failing = true
	l.mu.Unlock()
	l.gate.set(storeFails, true, err)
	if first {
		l.w.emit(Event{Kind: EventStoreFail, TaskID: taskID, Err: err})
	}
}

// works opens it again.
func (l *ledger) works() {
	l.mu.Lock()
	before := l.failing
	l.failing = false
	l.mu.Unlock()
	if before {
		l.gate.set(storeFails, false, nil)
		l.w.emit(Event{Kind: EventStoreOK})
	}
}

// isFailing reports whether the last write did not work.
func (l *ledger) isFailing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// forget drops what is past its time: the text of refused replies after the
// retention, tombstones 24 hours after the deadline.
func (l *ledger) forget(ctx context.Context, now time.Time) {
	for _, g := range l.graves() {
		keepText := g.text && now.Before(g.EndedAt.Add(l.w.cfg.Retention))
		var err error
		switch {
		case keepText:
		case !now.Before(g.deadline().Add(tombstone)):
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
