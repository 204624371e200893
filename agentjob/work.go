package agentjob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// resumedSeqs is the room for progress numbers of one run of a task: those of a
// resumption start above it, since the platform ignores old numbers.
const resumedSeqs = 1_000_000

// errUnreadable ends a task in which there is nothing to answer.
var errUnreadable = errors.New("the task has no readable message")

// work takes one claimed task through its life up to the saved reply.
func (r *run) work(task *Task, now time.Time) {
	rec := Record{
		Provider: r.provider, TaskID: task.ID, ChatID: task.ChatID,
		State: StateClaimed, ClaimedAt: now.Round(0), Deadline: task.Deadline.Round(0), Amount: task.Amount,
	}
	if r.cfg.Resume != nil {
		rec.Content.Task = task.Raw
	}
	r.attempt(task, rec, r.cfg.Handler)
}

// resume hands a task that was cut off to Config.Resume.
func (r *run) resume(task *Task, rec Record) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-r.tasks.Done():
		return // stays claimed, for the next start
	}
	rec.Resumed++
	task.Resumed, task.Deadline = rec.Resumed, rec.Deadline
	r.attempt(task, rec, r.cfg.Resume)
}

// attempt records the claim, lets h answer, and saves the reply or ends the task.
func (r *run) attempt(task *Task, rec Record, h Handler) {
	r.status.began(TaskStatus{ID: task.ID, Since: rec.ClaimedAt, Deadline: rec.Deadline})
	defer r.status.left(task.ID)

	// The first look at the task runs beside the durable write: both come
	// before the handler.
	looked := make(chan look, 1)
	go func() { looked <- r.lookAt(r.tasks, task.ID) }()
	err := r.ledger.put(r.tasks, rec)
	first := <-looked
	if err != nil {
		r.unrecorded(rec, err)
		return
	}
	r.emit(Event{Kind: EventClaimed, TaskID: task.ID})
	if !first.deadline.IsZero() {
		task.Deadline, rec.Deadline = first.deadline, first.deadline.Round(0)
	}
	switch {
	case first.over != nil:
		r.end(rec, endOfCause(first.over))
	case unreadable(task):
		r.end(rec, ending{end: EndFailed, reason: errUnreadable.Error(), err: errUnreadable})
	default:
		reply, err := r.handle(task, h)
		r.conclude(rec, reply, err)
	}
}

func unreadable(task *Task) bool {
	for _, m := range task.Messages {
		if strings.TrimSpace(m.Content) != "" || len(m.Attachments) > 0 {
			return false
		}
	}
	return true
}

// A verdict is a handler's error, with why its context ended.
type verdict struct {
	err      error
	cause    error     // nil: its context was still alive
	deadline time.Time // as far as it was learnt
}

// handle runs h in the task's context and watches the task meanwhile.
func (r *run) handle(task *Task, h Handler) (*Reply, verdict) {
	ctx := newScope(r.tasks)
	defer ctx.end(nil)
	handling := ctx.Context
	if !task.Deadline.IsZero() {
		var cancel context.CancelFunc
		handling, cancel = context.WithDeadlineCause(ctx, task.Deadline, ErrTaskExpired)
		defer cancel()
	}
	progress := newProgressBox(int64(task.Resumed)*resumedSeqs, func(p ProgressReport) { r.reportProgress(ctx, task.ID, p) })
	own := *task // the handler's, which it may change
	own.SessionID = sessionID(r.client.BaseURL(), r.provider, task.ID)
	own.progress = progress

	learnt := make(chan time.Time, 1)
	go func() { learnt <- r.watch(ctx, task.ID, task.Deadline) }()
	reply, err := call(handling, r.cfg.StuckGrace, func(ctx context.Context) (*Reply, error) { return h.Handle(ctx, &own) })
	out := verdict{err: err}
	if handling.Err() != nil {
		out.cause = context.Cause(handling)
	}
	ctx.end(nil)
	out.deadline = <-learnt
	progress.close()
	return reply, out
}

// conclude saves a finished reply, or ends the task by what stands against it.
func (r *run) conclude(rec Record, reply *Reply, out verdict) {
	var body []byte
	var tooLong bool
	if out.err == nil {
		body, out.err = encodeReply(reply)
		tooLong = errors.Is(out.err, ErrReplyTooLong)
	}
	rec.Deadline, rec.Content = out.deadline.Round(0), Content{}
	if body != nil {
		rec.Content = Content{Response: body, Usage: reply.Usage}
	}
	switch {
	case out.err == errStuck:
		r.stuck("the handler", rec.TaskID)
		r.end(rec, endOfCause(out.cause))
	case errors.Is(out.cause, ErrTaskCancelled):
		r.end(rec, endOfCause(out.cause)) // a late reply is kept, not sent
	case out.err == nil:
		r.save(rec)
	case tooLong:
		r.end(rec, ending{end: EndRejected, reason: SafeText(out.err), err: out.err})
	case out.cause != nil:
		e := endOfCause(out.cause)
		e.err = out.err
		r.end(rec, e)
	default:
		if u, ok := errors.AsType[*UnavailableError](out.err); ok {
			r.trip(u)
		}
		r.end(rec, ending{end: EndFailed, reason: SafeText(out.err), err: out.err})
	}
}

// maxKept bounds the text that is kept of a reply that is too long to be sent, in bytes of JSON. More
// might not fit on the disk, and then nothing else would be claimed.
const maxKept = 1 << 20

// encodeReply returns the bytes to send. A reply that is too long for the
// platform yields its bytes and an error: the text is kept, unless it is very long.
func encodeReply(reply *Reply) ([]byte, error) {
	if reply == nil {
		return nil, &ValidationError{Field: "Reply", Reason: "is nil: a handler returns a reply or an error"}
	}
	body, err := Response{Text: reply.Text}.encode()
	if errors.Is(err, ErrReplyTooLong) {
		body = Response{Text: reply.Text}.marshal()
		if len(body) > maxKept {
			return nil, fmt.Errorf("%w; with more than %d bytes it is not kept either", err, maxKept)
		}
	}
	return body, err
}

// save makes the reply durable and hands it to the outbox.
func (r *run) save(rec Record) {
	rec.State, rec.SavedAt = StateSaved, time.Now().Round(0)
	if err := r.ledger.put(r.saving, rec); err != nil {
		r.unrecorded(rec, err)
		return
	}
	r.emit(Event{Kind: EventSaved, TaskID: rec.TaskID})
	r.outbox.push(rec, true)
}

// An ending says how a task ends.
type ending struct {
	end    End
	status int
	reason string // for the record: no chat text
	err    error  // for the event

	discard bool // the text goes at once, whatever the end
}

// endOfCause is the ending of a task without a reply whose context ended.
func endOfCause(cause error) ending {
	switch {
	case errors.Is(cause, ErrTaskCancelled):
		return ending{end: EndRejected, reason: cause.Error(), err: cause}
	case errors.Is(cause, ErrTaskExpired):
		return ending{end: EndExpired, reason: cause.Error(), err: cause}
	default:
		return ending{end: EndInterrupted, reason: SafeText(cause), err: cause}
	}
}

// keepsText tells which ends keep the reply's text for the operator.
var keepsText = map[End]bool{EndRejected: true, EndExpired: true}

// ended returns the record of a task that ends now.
func (r Record) ended(e ending) Record {
	r.State, r.EndedAt = StateEnded, time.Now().UTC().Round(0)
	r.End, r.Status, r.Reason = e.end, e.status, e.reason
	r.Content.Task = nil
	if !keepsText[e.end] || e.discard {
		r.Content = r.Content.withoutText()
	}
	return r
}

// end records how a task ended and reports it.
func (r *run) end(rec Record, e ending) {
	rec = rec.ended(e)
	if err := r.ledger.settle(r.saving, rec); err != nil {
		r.unrecorded(rec, err)
		return
	}
	r.reportEnd(rec, e.err)
}

func (r *run) reportEnd(rec Record, err error) {
	r.status.ended(rec.End)
	rec.Content = rec.Content.withoutText()
	r.emit(Event{Kind: EventEnded, TaskID: rec.TaskID, End: rec.End, Status: rec.Status, Elapsed: time.Since(rec.ClaimedAt), Record: &rec, Err: err})
}

// unrecorded reports a step that could not be made durable: the lease is gone or
// the run ended while the store failed. What is on disk stays as it was, and the
// next start goes on from there.
func (r *run) unrecorded(rec Record, err error) {
	r.status.failed(err)
	r.emit(Event{Kind: EventStoreFail, TaskID: rec.TaskID, Err: fmt.Errorf("task %q is not recorded as %s: %w", rec.TaskID, rec.State, err)})
	if rec.State != StateEnded {
		rec.End = EndInterrupted
		r.reportEnd(rec, err)
	}
}
