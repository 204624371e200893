package agentjob

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	watchInterval    = 5 * time.Second
	watchTimeout     = 5 * time.Second
	progressInterval = 3 * time.Second // the platform takes one report in this time

	deadlinePrecision = time.Second // the Date header has no fractions, so a deadline may seem later than it is
)

// A look is what the platform says of an open task.
type look struct {
	deadline time.Time // on this machine's clock; zero: it did not say
	over     error     // why no reply is wanted any more; nil: it is, or nothing is known
}

// lookAt asks the platform once. Without an answer it knows nothing.
func (r *run) lookAt(task context.Context, taskID string) look {
	ctx, cancel := context.WithTimeout(task, watchTimeout)
	defer cancel()
	p, err := r.client.Progress(ctx, taskID)
	if err != nil {
		r.taskRouteFailed(task, taskID, err)
		return look{}
	}
	r.status.contact()
	var l look
	switch {
	case p.Remaining != nil:
		l.deadline = time.Now().Add(*p.Remaining)
	case !p.Deadline.IsZero():
		l.deadline = p.Deadline
	}
	switch late := !l.deadline.IsZero() && time.Until(l.deadline) < deadlinePrecision; {
	case p.Status.Over() && late:
		l.over = ErrTaskExpired
	case p.Status.Over() || p.Status.Completed():
		l.over = fmt.Errorf("%w: the platform calls it %s", ErrTaskCancelled, p.Status)
	}
	return l
}

// watch ends the scope when the task is over on the platform or its deadline
// passes, and returns the deadline as far as it was learnt.
func (r *run) watch(task scope, taskID string, deadline time.Time) time.Time {
	expiry := time.NewTimer(assumedDeadline)
	defer expiry.Stop()
	if !deadline.IsZero() {
		expiry.Reset(time.Until(deadline))
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-task.Done():
			return deadline
		case <-expiry.C:
			task.end(ErrTaskExpired)
			return deadline
		case <-tick.C:
		}
		l := r.lookAt(task, taskID)
		if l.over != nil {
			task.end(l.over)
			return deadline
		}
		if deadline.IsZero() && !l.deadline.IsZero() {
			deadline = l.deadline
			expiry.Reset(time.Until(deadline))
		}
	}
}

// reportProgress sends one report.
func (r *run) reportProgress(task context.Context, taskID string, p ProgressReport) {
	ctx, cancel := context.WithTimeout(task, watchTimeout)
	defer cancel()
	if err := r.client.ReportProgress(ctx, taskID, p); err != nil {
		r.taskRouteFailed(task, taskID, err)
	}
}

// taskRouteFailed reports a failed look or progress report, unless the task is over anyway. Only a
// refused key matters beyond it: that this task is forbidden (403) says nothing of the next.
func (r *run) taskRouteFailed(task context.Context, taskID string, err error) {
	switch {
	case task.Err() != nil:
	case errors.Is(err, ErrUnauthorized):
		r.platformFailed(EventWatchFail, err)
	default:
		r.status.failed(err)
		r.emit(Event{Kind: EventWatchFail, TaskID: taskID, Err: err})
	}
}
