package agentjob

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	heartbeatInterval = 45 * time.Second
	heartbeatTimeout  = 15 * time.Second
	readyTimeout      = 10 * time.Second
	defaultRetry      = 30 * time.Second // of Unavailable without a time
)

// A circuit is open after a handler said [Unavailable], until a time has come and
// Ready has succeeded.
type circuit struct {
	mu      sync.Mutex
	until   time.Time
	changed chan struct{} // holds a token after an opening
}

// remaining returns how long the circuit stays open without a new probe.
func (c *circuit) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.until)
}

// trip opens the circuit.
func (r *run) trip(u *UnavailableError) {
	retry := u.Retry
	if retry <= 0 {
		retry = defaultRetry
	}
	c := &r.circuit
	c.mu.Lock()
	if until := time.Now().Add(retry); until.After(c.until) {
		c.until = until
	}
	r.gate.set(circuitOpen, true, foreignError{u})
	c.mu.Unlock()
	r.emit(Event{Kind: EventCircuitOpen, Err: foreignError{u}})
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// closeCircuit closes the circuit after a good probe, unless a handler has opened it
// while the probe ran.
func (r *run) closeCircuit() {
	r.circuit.mu.Lock()
	defer r.circuit.mu.Unlock()
	if time.Until(r.circuit.until) <= 0 {
		r.gate.set(circuitOpen, false, nil)
	}
}

// present keeps the provider online for as long as work may be claimed: it asks
// Ready, opens the gate, and beats, and it cleans the records once an hour. It is the
// only caller of Ready and Heartbeat.
func (r *run) present() {
	var failures int
	var cleaned time.Time
	for r.claiming.Err() == nil {
		if now := time.Now(); cleaned.IsZero() || now.Sub(cleaned) >= housekeeping {
			r.ledger.forget(r.claiming, now)
			cleaned = now
		}
		wait, opened := r.look(&failures)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.circuit.changed:
		case <-r.ledger.failed:
		case <-opened:
		case <-r.claiming.Done():
		}
		timer.Stop()
	}
}

// look asks whether work can be done and beats if so. It returns when to look
// again, and a channel that tells earlier if only the gate keeps it from beating.
func (r *run) look(failures *int) (wait time.Duration, opened <-chan struct{}) {
	if !r.ledger.isProven() && !r.writable() {
		return storeRetry, nil
	}
	if wait := r.circuit.remaining(); wait > 0 {
		return wait, nil
	}
	if err := r.able(); err != nil {
		*failures++
		return backoff(*failures), nil
	}
	if opened := r.gate.opening(); !r.gate.isOpen() {
		return heartbeatInterval, opened // the backlog is full, or a write has failed
	}
	next, err := r.beat()
	if err != nil {
		*failures++
		return min(retryDelay(*failures, err), heartbeatInterval), nil
	}
	*failures = 0
	return next, nil
}

// able reports whether a task could be answered now.
func (r *run) able() error {
	ctx, cancel := context.WithTimeout(r.claiming, readyTimeout)
	defer cancel()
	_, err := call(ctx, r.cfg.StuckGrace, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.cfg.Ready(ctx)
	})
	switch {
	case err == errStuck:
		r.stuck("Ready", "")
		return err
	case err != nil && r.claiming.Err() != nil:
		return err
	case err != nil:
		if r.gate.set(notReady, true, err) {
			r.emit(Event{Kind: EventNotReady, Err: err})
		}
		r.status.failed(err)
		return err
	}
	r.closeCircuit()
	if r.gate.set(notReady, false, nil) {
		r.emit(Event{Kind: EventReady})
	}
	return nil
}

// writable reports whether a task could be recorded now: it writes what a failing store still
// owes, and something harmless beside it. A store that hasn't been written to since the start is
// asked too, so that one on a full disk doesn't cost a customer the first task.
func (r *run) writable() bool {
	err := r.ledger.pay(r.claiming)
	if err == nil {
		err = r.cfg.Store.BindProvider(r.claiming, r.client.fingerprint(), r.provider)
	}
	switch {
	case err == nil:
		r.ledger.works()
	case errors.Is(err, ErrLeaseLost):
		r.ledger.lost(err)
	case r.claiming.Err() == nil:
		r.ledger.fails("", err)
	}
	return r.ledger.isProven() // a task may still wait to save a reply that is too large for the disk
}

// beat sends one heartbeat and returns when the next is due.
func (r *run) beat() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(r.claiming, heartbeatTimeout)
	defer cancel()
	start := time.Now()
	answer, err := r.client.Heartbeat(ctx, Heartbeat{
		AttachmentTypes: r.cfg.AttachmentTypes, ServiceRevision: r.cfg.ServiceRevision, RuntimeInfo: r.cfg.RuntimeInfo,
	})
	if err != nil {
		if r.claiming.Err() == nil {
			r.platformFailed(EventHeartbeatFail, err)
		}
		return 0, err
	}
	r.status.update(func(s *Status) { s.LastHeartbeat = time.Now(); s.LastContact = s.LastHeartbeat })
	r.emit(Event{Kind: EventHeartbeat, Elapsed: time.Since(start)})
	if answer.Next > 0 {
		return answer.Next, nil
	}
	return heartbeatInterval, nil
}

// platformFailed reports a failed request, and ends the run if the key is refused.
func (r *run) platformFailed(kind EventKind, err error) {
	r.status.failed(err)
	r.emit(Event{Kind: kind, Err: err})
	if refused(err) {
		r.fail(fmt.Errorf("agentjob: the worker can't go on: %w", err), true)
	}
}

// stuck ends the run after a function of the user's ignored its context. Other
// tasks may still finish.
func (r *run) stuck(what, taskID string) {
	err := fmt.Errorf("agentjob: %s did not return %v after its context was done: %w", what, r.cfg.StuckGrace, ErrHandlerStuck)
	r.emit(Event{Kind: EventStuck, TaskID: taskID, Err: err})
	r.fail(err, false)
}
