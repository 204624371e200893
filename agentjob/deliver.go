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
		return r.settled(rec, ending{end: EndDelivered}, true)
	}
	var status int
	if api, ok := errors.AsType[*APIError](err); ok {
		status = api.StatusCode
	}
	r.status.failed(err)
	switch {
	case errors.Is(err, ErrUnauthorized):
		r.platformFailed(EventDeliveryRetry, err)
		return delivery{retry: backoffCap}
	case refusal(err):
		return r.settled(rec, ending{end: EndRejected, status: status, reason: safeText(err), err: err}, true)
	case started.After(rec.lastCall()):
		return r.settled(rec, ending{end: EndExpired, status: status, reason: safeText(err), err: err}, false)
	}
	r.emit(Event{Kind: EventDeliveryRetry, TaskID: rec.TaskID, Status: status, Attempt: p.attempts, Err: err})
	return delivery{retry: retryDelay(p.attempts, err)}
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

// settled records an end.
func (r *run) settled(rec Record, e ending, worked bool) delivery {
	r.end(rec, e)
	return delivery{settled: true, worked: worked}
}

// lastCall is when a delivery that fails for now is the last: after the deadline,
// or, if that was never learnt, when the platform has surely forgotten the task.
func (r Record) lastCall() time.Time {
	if r.Deadline.IsZero() {
		return r.ClaimedAt.Add(assumedDeadline + tombstone)
	}
	return r.Deadline
}
