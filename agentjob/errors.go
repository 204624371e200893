package agentjob

import (
	"errors"
)

// Errors for errors.Is. Those in the first group classify an answer of the
// platform and are matched by [*APIError]; the others come from this package.
var (
	// ErrUnauthorized: the provider key is missing, wrong or revoked (401).
	// Trying again does not help.
	ErrUnauthorized = errors.New("the provider key was refused")
	// ErrForbidden: the key is good, but not for this (403).
	ErrForbidden = errors.New("forbidden for this provider")
	// ErrRegistrationDisabled: the platform has switched registration off (503).
	ErrRegistrationDisabled = errors.New("registration is disabled by the platform")
	// ErrRegistrationBusy: another registration is in progress (503).
	ErrRegistrationBusy = errors.New("registration is busy")
	// ErrRegistrationUnavailable: registration did not work (another 5xx, or a 503 that says nothing).
	ErrRegistrationUnavailable = errors.New("registration is unavailable")
	// ErrRateLimited: too many requests (429).
	ErrRateLimited = errors.New("rate limited")
	// ErrConflict: too late or cancelled (409).
	ErrConflict = errors.New("the task is over: late, cancelled or answered otherwise")
	// ErrNotFound: the platform does not know it (404, 410).
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the platform refuses the request as it is (400, 413, 422 and other 4xx).
	ErrInvalid = errors.New("the request was refused as invalid")
	// ErrUnavailable: the platform or something before it failed (5xx, 408, a redirect).
	ErrUnavailable = errors.New("the platform is unavailable")
	// ErrMalformedResponse: an answer that can't be what the platform means,
	// such as HTML, cut JSON or an endless body.
	ErrMalformedResponse = errors.New("malformed response")
	// ErrUnreachable: no answer came at all.
	ErrUnreachable = errors.New("the platform could not be reached")
)

var (
	// ErrReplyTooLong: a reply is over [MaxReplyUnits]. It is never cut.
	ErrReplyTooLong = errors.New("reply text is too long")
	// ErrLeaseHeld: another worker has the provider's records open.
	ErrLeaseHeld = errors.New("another worker holds this provider's lease")
	// ErrLeaseLost: the lease is no longer ours; nothing more may be written.
	ErrLeaseLost = errors.New("the lease was lost")
	// ErrStoreFull: the store has reached its size limit. It works again when there is room.
	ErrStoreFull = errors.New("the store is full")
	// ErrStoreDamaged: the records can't be read; nothing is claimed until an operator has looked.
	ErrStoreDamaged = errors.New("the store is damaged")
	// ErrStoreNewer: a newer version of this program wrote the records. They are fine, so they stay
	// where they are; the error matches ErrStoreDamaged, too.
	ErrStoreNewer = errors.New("a newer version of this program wrote it: update this program")
	// ErrTaskExpired is the cause of a task context that ended at the platform's deadline.
	ErrTaskExpired = errors.New("the task's deadline passed")
	// ErrTaskCancelled is the cause of a task context that ended because the platform no longer wants a reply.
	ErrTaskCancelled = errors.New("the task was cancelled")
	// ErrStopped is the cause of a task context ended by Stop or by the
	// drain time-out; Run returns it if that left work behind.
	ErrStopped = errors.New("the worker was stopped")
	// ErrHandlerStuck: a handler, or a Ready, Acquire or Resume function, went on after its context was done.
	ErrHandlerStuck = errors.New("a handler ignores its context")
	// ErrHandlerPanic matches a [*PanicError].
	ErrHandlerPanic = errors.New("the handler panicked")
	// ErrWorkerNotRunning: the worker has no records at hand, before Run has read them and after it has returned.
	ErrWorkerNotRunning = errors.New("the worker is not running")
	// ErrNoRecord: the worker has no record of the task.
	ErrNoRecord = errors.New("there is no record of this task")
	// ErrNotWaiting: the task has no saved reply that waits for delivery.
	ErrNotWaiting = errors.New("no reply of this task waits for delivery")
	// ErrWorkerUsed: Run was called a second time.
	ErrWorkerUsed = errors.New("a worker runs once: make a new one")
)
