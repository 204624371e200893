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
	mu    sync.Mutex
	until time.Time
}

// A bell makes present look again at once. It holds at most one ring.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
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
	r.again.ring()
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

// A presence is what one look leaves for the next.
type presence struct {
	failures int
	cleaned  time.Time
}

// A forecast is when to look again, and a channel that tells earlier if only the gate keeps
// the provider from beating.
type forecast struct {
	wait   time.Duration
	opened <-chan struct{}
}

// present keeps the provider online until the worker is asked to end, by ctx too, or the lease is lost. Each
// look has a goroutine of its own: it does not keep the end waiting, and the stack that its
// requests need is gone between two.
func (r *run) present(ctx context.Context) {
	var p presence
	looked := make(chan forecast, 1)
	for {
		r.claimers.Go(func() { looked <- r.look(&p) })
		var next forecast
		select {
		case next = <-looked:
		case <-ctx.Done():
			return
		case <-r.draining.sent:
			return
		case <-r.lease.Lost():
			r.fail(ErrLeaseLost, true)
			return
		}
		select {
		case <-time.After(next.wait):
		case <-r.again:
		case <-next.opened:
		case <-ctx.Done():
			return
		case <-r.draining.sent:
			return
		case <-r.lease.Lost():
			r.fail(ErrLeaseLost, true)
			return
		}
	}
}

// look cleans the records once an hour, asks whether work can be done, and beats if so. It is
// the only caller of Ready and Heartbeat.
func (r *run) look(p *presence) forecast {
	if now := time.Now(); p.cleaned.IsZero() || now.Sub(p.cleaned) >= housekeeping {
		r.ledger.forget(r.claiming, now)
		p.cleaned = now
	}
	if !r.ledger.isProven() && !r.writable() {
		return forecast{wait: storeRetry}
	}
	if wait := r.circuit.remaining(); wait > 0 {
		return forecast{wait: wait}
	}
	if err := r.able(); err != nil {
		p.failures++
		return forecast{wait: backoff(p.failures)}
	}
	if opened := r.gate.opening(); !r.gate.isOpen() {
		return forecast{heartbeatInterval, opened} // the backlog is full, or a write has failed
	}
	next, err := r.beat()
	if err != nil {
		p.failures++
		return forecast{wait: min(retryDelay(p.failures, err), heartbeatInterval)}
	}
	p.failures = 0
	return forecast{wait: next}
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
		err = r.cfg.Store.BindProvider(r.claiming, r.client.KeyFingerprint(), r.provider)
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
