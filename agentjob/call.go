package agentjob

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// A PanicError is what a panic of a handler becomes. It matches
// [ErrHandlerPanic]. Its text leaves the value out, since that may quote the
// conversation or a key.
type PanicError struct {
	Value any    // what the handler panicked with
	Stack []byte // of the handler's goroutine
}

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked with a %T", e.Value) }

// Unwrap returns [ErrHandlerPanic].
func (e *PanicError) Unwrap() error { return ErrHandlerPanic }

// errGoexit: the handler ended its goroutine, as a test's FailNow does.
var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit")

// errStuck is call's own, so that no error of the user's is taken for it.
var errStuck = fmt.Errorf("agentjob: %w", ErrHandlerStuck)

// call runs f, a function of the user's, on a goroutine of its own, and returns
// what it returns, an error as a foreignError. A panic becomes a *PanicError, also one of
// the error's own methods. If f is still running grace after ctx is done, call returns
// errStuck and leaves the goroutine behind: nothing can stop it.
func call[T any](ctx context.Context, grace time.Duration, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		out := result{err: errGoexit}
		defer func() {
			if v := recover(); v != nil {
				out = result{err: &PanicError{Value: v, Stack: debug.Stack()}}
			}
			done <- out
		}()
		value, err := f(ctx)
		out = result{value, foreign(err)}
	}()
	select {
	case out := <-done:
		return out.value, out.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case out := <-done:
		return out.value, out.err
	case <-timer.C:
		var zero T
		return zero, errStuck
	}
}

// An UnavailableError says that the engine behind a handler can't answer, for
// this task and the next ones alike: quota used up, login expired, service down.
type UnavailableError struct {
	Err   error
	Retry time.Duration // when asking again makes sense; 0: not known
}

func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return "the engine is unavailable"
	}
	return "the engine is unavailable: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Unavailable wraps a handler's error to say that the next task would fail the
// same way. The worker then stops claiming and beating, asks Config.Ready
// after retry (0: 30 seconds), one call at a time, and goes on once that succeeds. Saved replies are
// delivered meanwhile. It returns nil if err is nil.
func Unavailable(err error, retry time.Duration) error {
	if err == nil {
		return nil
	}
	return &UnavailableError{Err: err, Retry: retry}
}
