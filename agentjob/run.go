package agentjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// saveGrace is how long a store may take to record what stopped handlers left.
const saveGrace = 5 * time.Second

// A scope is a context that somebody else may end.
type scope struct {
	context.Context
	end context.CancelCauseFunc
}

func newScope(parent context.Context) scope {
	ctx, cancel := context.WithCancelCause(parent)
	return scope{ctx, cancel}
}

// A run is a Worker's one Run from the lease on. Its scopes end one after the
// other: claiming at drain, tasks and delivering at stop, saving when a stopped
// handler has had its grace, so that a reply that is finished late is still recorded.
type run struct {
	*Worker
	provider string
	lease    Lease
	gate     *gate
	ledger   *ledger
	outbox   *outbox
	slots    chan struct{} // one token a running task
	circuit  circuit
	again    bell

	claiming, tasks, delivering, saving scope

	claimers, working sync.WaitGroup

	mu     sync.Mutex
	reason error         // why the run can't go on
	hard   chan struct{} // closed when it must end at once
}

func newRun(w *Worker, provider string, lease Lease, ctx context.Context) *run {
	base := context.WithoutCancel(ctx)
	r := &run{
		Worker: w, provider: provider, lease: lease,
		slots:    make(chan struct{}, w.cfg.Concurrency),
		again:    make(bell, 1),
		claiming: newScope(base), tasks: newScope(base), delivering: newScope(base), saving: newScope(base),
		hard: make(chan struct{}),
	}
	r.gate = newGate(r.claiming)
	r.ledger = newLedger(w, lease, r.gate, func(err error) { r.fail(err, true) }, r.again)
	r.outbox = newOutbox(r.delivering, r.deliver, r.backlog)
	return r
}

// fail ends the run with a reason; the first one counts, and that a handler is stuck
// besides. Hard also cancels what is under way. Claiming ends at once: the caller is about to free its slot, and what a poll
// claimed into it would be lost.
func (r *run) fail(err error, hard bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.reason == nil:
		r.reason = err
	case errors.Is(err, ErrHandlerStuck) && !errors.Is(r.reason, ErrHandlerStuck):
		r.reason = errors.Join(r.reason, err)
	}
	r.claiming.end(err)
	r.draining.send()
	if hard {
		select {
		case <-r.hard:
		default:
			close(r.hard)
		}
	}
}

// serve runs to the end. While nothing happens its goroutine and that of claim are all there is.
func (r *run) serve(ctx context.Context) error {
	r.status.attach(r.gate)
	err := r.recover(ctx)
	if err == nil {
		r.operable(r)
		r.status.update(func(s *Status) { s.Phase = PhaseServing })
		if !r.asked(ctx) {
			r.claimers.Go(r.claim)
			r.present(ctx)
		}
		err = r.finish()
	}
	return r.close(err)
}

// close ends what is left, after err, and gives the lease up.
func (r *run) close(err error) error {
	for _, s := range []scope{r.claiming, r.tasks, r.delivering, r.saving} {
		s.end(ErrStopped)
	}
	r.working.Wait() // at once, unless recover failed half-way
	r.outbox.wait()
	r.operable(nil)
	err = errors.Join(err, r.pay())
	r.gate.close()
	if closing := r.lease.Close(); closing != nil && !errors.Is(closing, ErrLeaseLost) {
		err = errors.Join(err, fmt.Errorf("agentjob: close the records: %w", closing))
	}
	return err
}

// finish drains, then stops what did not end in time, and waits for every
// goroutine.
func (r *run) finish() error {
	r.status.update(func(s *Status) { s.Phase = PhaseDraining })
	r.emit(Event{Kind: EventDraining})
	r.claiming.end(ErrStopped)

	idle := make(chan struct{})
	go func() {
		r.claimers.Wait() // starts tasks
		r.working.Wait()  // fills the outbox
		r.outbox.wait()
		close(idle)
	}()
	drain := time.NewTimer(r.cfg.DrainTimeout)
	defer drain.Stop()
	select {
	case <-idle:
		return r.outcome(false)
	case <-drain.C:
	case <-r.stopping.sent:
	case <-r.hard:
	case <-r.lease.Lost():
		r.fail(ErrLeaseLost, true)
	}
	cause := r.why()
	if cause == nil {
		cause = ErrStopped
	}
	r.tasks.end(cause)
	r.delivering.end(cause)
	grace := time.AfterFunc(r.cfg.StuckGrace+saveGrace, func() { r.saving.end(cause) })
	defer grace.Stop()
	<-idle
	return r.outcome(true)
}

// pay writes what is owed to the store, for the last time.
func (r *run) pay() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.saving), saveGrace)
	defer cancel()
	if err := r.ledger.pay(ctx); err != nil && !errors.Is(err, ErrLeaseLost) {
		return fmt.Errorf("agentjob: record how tasks ended (they are looked at again at the next start): %w", err)
	}
	return nil
}

func (r *run) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// outcome is what Run returns.
func (r *run) outcome(stopped bool) error {
	if err := r.why(); err != nil {
		return err
	}
	s := r.Status()
	if stopped && s.Ends[EndInterrupted]+s.Backlog > 0 {
		return fmt.Errorf("agentjob: %w: %d tasks were interrupted, %d saved replies wait for the next start",
			ErrStopped, s.Ends[EndInterrupted], s.Backlog)
	}
	return nil
}

// backlog is told how many saved replies wait.
func (r *run) backlog(n int) {
	r.status.update(func(s *Status) { s.Backlog = n })
	var err error
	if n >= r.cfg.Backlog {
		err = fmt.Errorf("%d saved replies wait for delivery", n)
	}
	r.gate.set(backlogFull, err != nil, err)
}

// recover takes up what an earlier run left: saved replies are delivered,
// tasks that were cut off are resumed or reported.
func (r *run) recover(ctx context.Context) error {
	loading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unwatch := r.cancelOnSignal(cancel)
	open, err := r.ledger.load(loading)
	unwatch()
	if err != nil {
		if loading.Err() != nil {
			return nil // asked to end: the next start reads them
		}
		return err
	}
	slices.SortFunc(open, func(a, b Record) int { return a.ClaimedAt.Compare(b.ClaimedAt) }) // who has waited longest comes first
	for _, rec := range open {
		switch rec.State {
		case StateSaved:
			r.outbox.push(rec, false)
		case StateClaimed:
			if err := r.recoverClaimed(rec); err != nil {
				return err
			}
		default:
			return fmt.Errorf("agentjob: record of task %q has state %q, which this version does not know: %w", rec.TaskID, rec.State, ErrStoreDamaged)
		}
	}
	return nil
}

func (r *run) recoverClaimed(rec Record) error {
	if r.cfg.Resume != nil && rec.Content.Task != nil && time.Now().Before(rec.deadline()) {
		task, err := decodeStoredTask(rec.Content.Task)
		if err != nil {
			return fmt.Errorf("agentjob: record of task %q: %w", rec.TaskID, errors.Join(ErrStoreDamaged, err))
		}
		r.working.Go(func() { r.resume(task, rec) })
		return nil
	}
	// Beside everything else: a store that can't be written must not hold up saved replies.
	r.working.Go(func() {
		r.end(rec, ending{end: EndInterrupted, reason: "an earlier run ended before a reply was saved"})
	})
	return nil
}
