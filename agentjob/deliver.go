package agentjob

import (
	"context"
	"errors"
	"time"
)

// deliver tries once to deliver a saved reply, always with the same bytes: the
// platform answers a repeat of the accepted reply with success.
func (r *run) deliver(ctx context.Context, p *parcel) delivery {
	rec := p.rec
	started := time.Now()
	_, err := r.client.respondBytes(ctx, rec.TaskID, rec.Content.Response)
	if err != nil && ctx.Err() != nil {
		return delivery{settled: false, worked: true} // stopped: it stays saved
	}
	p.attempts++
	if err == nil {
		r.status.contact()
	} else {
		r.status.failed(err)
	}
	e, settled := verdictOn(rec, started, err)
	switch {
	case settled:
		r.end(rec, e)
		return delivery{settled: true, worked: e.end != EndExpired}
	case errors.Is(err, ErrUnauthorized):
		r.platformFailed(EventDeliveryRetry, err)
		return delivery{retry: backoffCap}
	}
	r.emit(Event{Kind: EventDeliveryRetry, TaskID: rec.TaskID, Status: e.status, Attempt: p.attempts, Err: err})
	return delivery{retry: retryDelay(p.attempts, err)}
}

// verdictOn tells how a saved reply ends after an attempt that was started then and returned err,
// or that it does not end yet.
func verdictOn(rec Record, started time.Time, err error) (e ending, settled bool) {
	if err == nil {
		return ending{end: EndDelivered}, true
	}
	e = ending{reason: SafeText(err), err: err}
	if api, ok := errors.AsType[*APIError](err); ok {
		e.status = api.StatusCode
	}
	switch {
	case errors.Is(err, ErrUnauthorized):
		return e, false // the reply is good, the key is not
	case refusal(err):
		e.end = EndRejected
	case started.After(rec.lastCall()):
		e.end = EndExpired
	}
	return e, e.end != ""
}

// refusal reports whether the platform will never take this reply.
func refusal(err error) bool {
	for _, kind := range []error{ErrForbidden, ErrNotFound, ErrConflict, ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	_, local := errors.AsType[*ValidationError](err)
	return local
}

// lastCall is when a delivery that fails for now is the last: after the deadline,
// or, if that was never learnt, when the platform has surely forgotten the task.
func (r Record) lastCall() time.Time {
	if r.Deadline.IsZero() {
		return r.ClaimedAt.Add(assumedDeadline + tombstone)
	}
	return r.Deadline
}
