package agentjob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// A Worker serves one provider: it stays online, claims tasks, has the handler answer
// them and delivers the replies, as the package comment describes. Make one
// with [NewWorker] and call Run once. All methods are safe for concurrent use.
type Worker struct {
	cfg    Config
	client *Client // one attempt a call: the worker has its own patience

	used     atomic.Bool
	draining *signal // when the worker is asked to end, in whatever way
	stopping *signal
	status   statusBoard

	operating sync.RWMutex
	current   *run // while there are records to operate on; guarded by operating
}

// NewWorker checks cfg and returns a worker that is not yet running. The error
// joins a [*ValidationError] for every wrong field.
func NewWorker(cfg Config) (*Worker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("agentjob: worker configuration: %w", err)
	}
	w := &Worker{cfg: cfg, client: cfg.Client.once(), draining: newSignal(), stopping: newSignal()}
	w.status.s.Phase = PhaseNew
	return w, nil
}

// Drain asks the worker to end well: it claims nothing more and goes offline,
// finishes and delivers what it has, and Run returns; after Config.DrainTimeout
// it is stopped. A poll in progress is given up; if the platform hands out a task in that very
// moment, the task expires there. Drain returns at once and may be called at any time, also before Run.
func (w *Worker) Drain() { w.draining.send() }

// Stop asks the worker to end now: contexts of running handlers are cancelled
// with [ErrStopped] as the cause, their tasks end as [EndInterrupted]; saved replies stay in the
// store for the next start. It returns at once and may be called at any time.
func (w *Worker) Stop() {
	w.stopping.send()
	w.draining.send() // whoever waits for the end waits for this
}

// Run serves until ctx is done, Drain or Stop is called, or it can't go on, and
// returns once all its goroutines have ended and the lease is given up. The end
// of ctx means Drain. A worker runs once: a second call returns [ErrWorkerUsed].
//
// While the platform can't be reached, or answers with what is not its API, Run keeps
// trying; Status().LastError and the events tell why.
//
// It returns nil after a clean drain, also if it never came online; [ErrStopped] if a stop or the drain
// time-out interrupted tasks or left saved replies undelivered; and otherwise
// why it can't go on: [ErrUnauthorized] or [ErrForbidden] when the platform
// refuses the key, [ErrLeaseHeld] when another worker has the records,
// [ErrLeaseLost], [ErrStoreDamaged], or, maybe besides, [ErrHandlerStuck] when a function
// of the caller's ignores its context. That function's goroutine is then left behind;
// nothing else is.
func (w *Worker) Run(ctx context.Context) error {
	if !w.used.CompareAndSwap(false, true) {
		return ErrWorkerUsed
	}
	err := w.run(ctx)
	w.stopped(err)
	return err
}

func (w *Worker) stopped(err error) {
	w.status.update(func(s *Status) { s.Phase, s.Err = PhaseStopped, err })
	w.emit(Event{Kind: EventStopped, Err: err})
}

func (w *Worker) run(ctx context.Context) error {
	if w.asked(ctx) {
		return nil
	}
	provider, lease, err := w.open(ctx)
	if lease == nil {
		return err
	}
	return newRun(w, provider, lease, ctx).serve(ctx)
}

// open returns the provider and the lease of its records. Without an error or a lease it
// was asked to end before anything was begun.
func (w *Worker) open(ctx context.Context) (provider string, lease Lease, err error) {
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer w.cancelOnSignal(cancel)()

	w.status.update(func(s *Status) { s.Phase = PhaseStarting })
	provider, err = w.identify(starting)
	if err == nil {
		w.status.update(func(s *Status) { s.AgentID = provider })
		if lease, err = w.cfg.Store.Acquire(starting, provider); err == nil {
			return provider, lease, nil
		}
		err = fmt.Errorf("agentjob: open the records of %s: %w", provider, err)
	}
	if starting.Err() != nil {
		err = nil
	}
	return "", nil, err
}

// asked reports whether the worker was asked to end.
func (w *Worker) asked(ctx context.Context) bool {
	select {
	case <-w.draining.sent:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// cancelOnSignal cancels when the worker is asked to end, until the returned
// function has been called.
func (w *Worker) cancelOnSignal(cancel context.CancelCauseFunc) (unwatch func()) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-w.draining.sent:
			cancel(ErrStopped)
		case <-done:
		}
	})
	return sync.OnceFunc(func() { close(done); watching.Wait() })
}

// identify finds out which provider the key belongs to: from the store, so that
// an offline start works, or from the platform, for as long as that takes.
func (w *Worker) identify(ctx context.Context) (string, error) {
	fingerprint := w.client.KeyFingerprint()
	provider, err := w.cfg.Store.Provider(ctx, fingerprint)
	if err != nil {
		return "", fmt.Errorf("agentjob: look up the provider in the store: %w", err)
	}
	for n := 1; provider == ""; n++ {
		me, err := w.client.Me(ctx)
		switch {
		case err == nil && me.AgentID != "":
			provider = me.AgentID
			if err := w.cfg.Store.BindProvider(ctx, fingerprint, provider); err != nil {
				return "", fmt.Errorf("agentjob: note the provider in the store: %w", err)
			}
			continue
		case err == nil:
			err = fmt.Errorf("agentjob: read the provider's profile: it has no agent id: %w", ErrMalformedResponse)
		case refused(err):
			return "", err
		}
		w.status.failed(err)
		w.emit(Event{Kind: EventPollFail, Err: err})
		if err := sleep(ctx, retryDelay(n, err)); err != nil {
			return "", err
		}
	}
	return provider, nil
}

// refused reports whether the platform refuses the key itself, so that nothing
// will work until an operator has acted.
func refused(err error) bool {
	return errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrForbidden)
}

// sessionID derives Task.SessionID.
func sessionID(platform, provider, taskID string) string {
	sum := sha256.New()
	for _, part := range []string{"agentjob session", platform, provider, taskID} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// A signal is sent at most once.
type signal struct {
	once sync.Once
	sent chan struct{}
}

func newSignal() *signal { return &signal{sent: make(chan struct{})} }

func (s *signal) send() { s.once.Do(func() { close(s.sent) }) }
