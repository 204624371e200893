package agentjob

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// What an operator does with records: by hand beside a running worker, whose records are its own,
// or between two runs, with a lease.

var (
	errAtWork      = fmt.Errorf("%w: the handler works on it, and only the customer can cancel it", ErrNotWaiting)
	errBeingSent   = fmt.Errorf("%w: it is being delivered at this moment; look again", ErrNotWaiting)
	errEnded       = fmt.Errorf("%w: it has ended", ErrNotWaiting)
	errInterrupted = fmt.Errorf("%w: its run was cut off; the next start of the worker reports or resumes it", ErrNotWaiting)
)

// discarded is how a reply ends that its operator takes back.
var discarded = ending{end: EndRejected, reason: "discarded by the operator", discard: true}

// operable makes the run the one whose records operators see, nil for none.
func (w *Worker) operable(r *run) {
	w.operating.Lock()
	defer w.operating.Unlock()
	w.current = r
}

// operate calls f with the worker's run, which does not end meanwhile.
func (w *Worker) operate(does, taskID string, f func(*run) error) error {
	w.operating.RLock()
	defer w.operating.RUnlock()
	err := ErrWorkerNotRunning
	if w.current != nil {
		err = f(w.current)
	}
	if err != nil {
		return fmt.Errorf("agentjob: %s task %s: %w", does, quoteID(taskID), err)
	}
	return nil
}

// Records yields the worker's records as its store has them, in no particular order; see
// [Lease]. Outside of a run it yields [ErrWorkerNotRunning].
func (w *Worker) Records(ctx context.Context) iter.Seq2[Record, error] {
	w.operating.RLock()
	defer w.operating.RUnlock()
	if w.current == nil {
		return func(yield func(Record, error) bool) {
			yield(Record{}, fmt.Errorf("agentjob: read the records: %w", ErrWorkerNotRunning))
		}
	}
	return w.current.lease.Records(ctx)
}

// Redeliver makes a saved reply due now that waits for its next attempt, and returns at once:
// an [Event] or the record tells how it went. It never runs the handler. It returns [ErrNoRecord],
// [ErrNotWaiting] if there is nothing to deliver, or [ErrWorkerNotRunning].
func (w *Worker) Redeliver(taskID string) error {
	return w.operate("redeliver the reply of", taskID, func(r *run) error {
		if state, err := r.ledger.look(taskID); err != nil || state != StateSaved {
			return err
		}
		r.outbox.hasten(taskID) // one that is not in the queue is under way, which is as good
		return nil
	})
}

// Discard gives a saved reply up: the task ends as [EndRejected], nothing more is sent, and the
// text is dropped. Of a task that has ended it drops the text that is still kept. When
// Discard returns, that would survive a crash. It returns [ErrNoRecord], [ErrNotWaiting] while the handler
// works or the reply is being delivered, or [ErrWorkerNotRunning].
func (w *Worker) Discard(ctx context.Context, taskID string) error {
	return w.operate("discard the reply of", taskID, func(r *run) error {
		state, err := r.ledger.look(taskID)
		switch {
		case errors.Is(err, errEnded):
			err = r.ledger.strip(ctx, taskID)
		case err == nil && state == StateSaved:
			rec, ok := r.outbox.take(taskID)
			if !ok {
				return errBeingSent
			}
			r.end(rec, discarded)
		}
		if err != nil {
			return err
		}
		// A durable write makes what was written before it durable, too.
		return r.cfg.Store.BindProvider(ctx, r.client.KeyFingerprint(), r.provider)
	})
}

// look returns [StateSaved], or an error that says why there is nothing to deliver.
func (l *ledger) look(taskID string) (State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state, ok := l.known[taskID]; {
	case !ok:
		return "", ErrNoRecord
	case state == StateEnded:
		return state, errEnded
	case state != StateSaved:
		return state, errAtWork
	default:
		return state, nil
	}
}

// strip drops the text of an ended task.
func (l *ledger) strip(ctx context.Context, taskID string) error {
	l.mu.Lock()
	g := l.ended[taskID]
	_, owed := l.owed[taskID]
	l.mu.Unlock()
	if owed {
		return fmt.Errorf("%w: its end can't be written at the moment; try again when the store works", ErrNotWaiting)
	}
	if !g.text {
		return nil
	}
	if err := l.lease.Put(ctx, g.Record); err != nil {
		return err
	}
	l.stored(g.Record)
	return nil
}

// Redeliver delivers a saved reply between two runs of a worker, with the lease of its provider:
// one call of [Client.Respond] with the recorded bytes. It returns the record as it is then. An
// error means that the reply still waits, or that there is none: [ErrNoRecord], [ErrNotWaiting].
func Redeliver(ctx context.Context, client *Client, lease Lease, taskID string) (Record, error) {
	fail := func(rec Record, err error) (Record, error) {
		return rec, fmt.Errorf("agentjob: redeliver the reply of task %s: %w", quoteID(taskID), err)
	}
	rec, err := find(ctx, lease, taskID)
	switch {
	case err != nil:
		return fail(rec, err)
	case rec.State == StateEnded:
		return fail(rec, errEnded)
	case rec.State != StateSaved:
		return fail(rec, errInterrupted)
	}
	started := time.Now()
	_, err = client.respondBytes(ctx, taskID, rec.Content.Response)
	if err != nil && ctx.Err() != nil {
		return rec, err
	}
	e, settled := verdictOn(rec, started, err)
	if !settled {
		return rec, err
	}
	ended := rec.ended(e)
	if err := lease.Put(ctx, ended); err != nil {
		return fail(rec, fmt.Errorf("the platform has decided (%s), but that can't be recorded; the next start asks again: %w", e.end, err))
	}
	return ended, nil
}

// Discard is [Worker.Discard] between two runs of a worker, with the lease of its provider. It
// returns the record as it is then, durable once the lease is closed.
func Discard(ctx context.Context, lease Lease, taskID string) (Record, error) {
	rec, err := find(ctx, lease, taskID)
	switch {
	case err != nil:
	case rec.State == StateSaved:
		rec = rec.ended(discarded)
		err = lease.Put(ctx, rec)
	case rec.State != StateEnded:
		err = errInterrupted
	case rec.Content.hasText():
		rec.Content = rec.Content.withoutText()
		err = lease.Put(ctx, rec)
	}
	if err != nil {
		return rec, fmt.Errorf("agentjob: discard the reply of task %s: %w", quoteID(taskID), err)
	}
	return rec, nil
}

func find(ctx context.Context, lease Lease, taskID string) (Record, error) {
	for rec, err := range lease.Records(ctx) {
		if err != nil {
			return Record{}, fmt.Errorf("read the records: %w", err)
		}
		if rec.TaskID == taskID {
			return rec, nil
		}
	}
	return Record{}, ErrNoRecord
}
