package agentjob_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// The promises of a worker, as the README, the package comment and Config word them.
const (
	runsOnce     = "a claimed task is run at most once; what Resume gets says how often"
	claimedFirst = "a claim is on disk before the handler runs"
	arrives      = "a task that came whole is recorded"
	savedFirst   = "a reply is on disk before it is sent"
	sameBytes    = "the bytes sent for a task never differ"
	shownOnce    = "a customer sees a reply once"
	sentNoMore   = "a reply that was decided on is not sent again"
	delivers     = "a saved reply is delivered until the platform accepts it, refuses it or the task expires"
	keepsText    = "the text of a reply that was not accepted is kept, of another dropped"
	ends         = "every claimed task ends, as what became of it"
	onlyWhenAble = "nothing is claimed and no heartbeat sent while work can't be done or is not wanted"
	withinSlots  = "no more is claimed than Concurrency and Acquire allow"
	endsInTime   = "Run returns in time and says why"
	reports      = "events and status tell each end once"
	noHotLoop    = "the platform is not hammered"
	goesOn       = "when all is well again the worker serves again"
)

var promises = []string{
	runsOnce, claimedFirst, arrives, savedFirst, sameBytes, shownOnce, sentNoMore, delivers, keepsText,
	ends, onlyWhenAble, withinSlots, endsInTime, reports, noHotLoop, goesOn,
}

// recorded notes a record that the store has taken. x.mu is held.
func (l *life) recorded(rec agentjob.Record) {
	x := l.x
	e := x.byID[rec.TaskID]
	if e == nil {
		x.breaks(ends, "a record of a task that was never sent: %q", rec.TaskID)
		return
	}
	before := e.record
	switch {
	case !before.State.CanBecome(rec.State):
		x.breaks(ends, "task %d went from %q to %q", e.number, before.State, rec.State)
	case before.State == agentjob.StateEnded && before.End != rec.End:
		x.breaks(ends, "task %d ended as %s and then as %s", e.number, before.End, rec.End)
	case rec.State == agentjob.StateEnded && before.State != agentjob.StateEnded:
		e.ender = l
	}
	if rec.State == agentjob.StateEnded && rec.Content.Task != nil {
		x.breaks(keepsText, "task %d has ended as %s and its conversation is kept", e.number, rec.End)
	}
	if rec.State != agentjob.StateEnded {
		e.holders = append(e.holders, l)
	}
	if rec.State == agentjob.StateSaved && e.reply == nil {
		e.reply = bytes.Clone(rec.Content.Response)
	}
	e.record = rec
	l.weighBacklog()
}

// weighBacklog notes whether too many replies wait. x.mu is held.
func (l *life) weighBacklog() {
	const why = "the backlog was full"
	waiting := 0
	for _, e := range l.x.errands {
		if e.record.State == agentjob.StateSaved && len(l.endsOf(e)) == 0 {
			waiting++
		}
	}
	if _, is := l.shut[why]; waiting < l.x.plan.Backlog {
		delete(l.shut, why)
	} else if !is {
		l.shut[why] = time.Now()
	}
}

// endsOf returns the ends of a task that this life has reported. x.mu is held.
func (l *life) endsOf(e *errand) (found []agentjob.Event) {
	for _, event := range l.events {
		if event.Kind == agentjob.EventEnded && event.TaskID == e.id {
			found = append(found, event)
		}
	}
	return found
}

// checkRun looks at the beginning of a run. x.mu is held.
func (l *life) checkRun(e *errand, task *agentjob.Task) {
	x := l.x
	if e.record.State != agentjob.StateClaimed || e.record.Resumed != task.Resumed {
		x.breaks(claimedFirst, "task %d is run as resumption %d, its record is %q of resumption %d", e.number, task.Resumed, e.record.State, e.record.Resumed)
	}
	if task.Resumed == 0 {
		if e.runs++; e.runs > 1 || e.resumed > 0 {
			x.breaks(runsOnce, "run %d of task %d, after %d resumptions", e.runs, e.number, e.resumed)
		}
		return
	}
	if !x.plan.Resume || task.Resumed <= e.resumed {
		x.breaks(runsOnce, "task %d is resumption %d after %d", e.number, task.Resumed, e.resumed)
	}
	e.resumed = task.Resumed
}

// checkRequest looks at the beginning of a request. x.mu is held.
func (l *life) checkRequest(route agentjobtest.Route, e *errand, body []byte) {
	x, now := l.x, time.Now()
	l.requests++
	if most := requestsAtFirst + requestsAMinute*now.Sub(l.began).Minutes(); float64(l.requests) > most {
		x.breaks(noHotLoop, "request %d in %v", l.requests, now.Sub(l.began))
	}
	switch route {
	case agentjobtest.RoutePoll, agentjobtest.RouteHeartbeat:
		for why, since := range l.shut {
			if since.Before(now) {
				x.breaks(onlyWhenAble, "%s %v after %s", route, now.Sub(since), why)
			}
		}
		if l.unavailableAt.Before(now) && now.Before(l.unavailable) {
			x.breaks(onlyWhenAble, "%s %v before a handler said that it makes sense again", route, l.unavailable.Sub(now))
		}
	case agentjobtest.RouteRespond:
		l.checkResponse(e, body)
	}
	if route == agentjobtest.RoutePoll {
		if l.polling++; l.polling > 1 {
			x.breaks(withinSlots, "%d polls at once", l.polling)
		}
		if l.running >= x.plan.Concurrency || l.acquired == 0 {
			x.breaks(withinSlots, "a poll beside %d handlers, with %d acquired", l.running, l.acquired)
		}
	}
}

func (l *life) checkResponse(e *errand, body []byte) {
	x := l.x
	switch {
	case e == nil:
		x.breaks(savedFirst, "a reply to a task that was never sent")
	case e.reply == nil:
		x.breaks(savedFirst, "task %d, whose record is %q", e.number, e.record.State)
	case !bytes.Equal(body, e.reply):
		x.breaks(sameBytes, "task %d: saved %.100q, sent %.100q", e.number, e.reply, body)
	case e.record.State == agentjob.StateEnded:
		x.breaks(sentNoMore, "task %d has ended as %s", e.number, e.record.End)
	case l.accepted[e]:
		x.breaks(sentNoMore, "task %d was accepted", e.number)
	case l.lost && l.askedAt.Before(time.Now()):
		x.breaks(sentNoMore, "task %d: its records are another's now", e.number)
	}
}

// answered looks at an answer that was read whole. x.mu is held.
func (l *life) answered(route agentjobtest.Route, e *errand, resp *http.Response, body string) {
	good := resp.StatusCode >= 200 && resp.StatusCode <= 299
	switch {
	case route == agentjobtest.RoutePoll && good:
		for _, e := range l.x.errands {
			if e.record.State == "" && strings.Contains(body, `"`+e.id+`"`) {
				e.arrived = l
			}
		}
	case route == agentjobtest.RouteRespond && e != nil && good:
		l.accepted[e] = l.accepted[e] || strings.Contains(body, `"`+e.id+`"`)
	case route == agentjobtest.RouteRespond && e != nil && decides(resp.StatusCode):
		e.refusals = append(e.refusals, resp.StatusCode)
	}
}

// decides reports whether a status can mean that the platform will never take this reply. A key that
// is refused, a limit, a server's trouble and another address say nothing about it.
func decides(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status <= 499
}

// checkEnd looks at the return of Run. x.mu is held.
func (l *life) checkEnd() {
	x := l.x
	if took := time.Since(l.askedAt); l.asked != "" && took > drainTakes {
		x.breaks(endsInTime, "%v after it was asked to %s", took, l.asked)
	}
	if took := time.Since(l.stopped); !l.stopped.IsZero() && took > stopTakes {
		x.breaks(endsInTime, "%v after it was asked to stop", took)
	}
	if !l.mayReturn(l.err) {
		x.breaks(endsInTime, "Run returned %v after it was asked to %q", l.err, l.asked)
	}
	if !errors.Is(l.err, agentjob.ErrHandlerStuck) && l.running > 0 || l.acquired != 0 {
		x.breaks(endsInTime, "Run returned before %d handlers, with %d acquired", l.running, l.acquired)
	}
	l.checkReports()
}

// mayReturn reports whether something in the schedule explains what Run returned.
func (l *life) mayReturn(err error) bool {
	has := func(is func(step) bool) bool { return slices.ContainsFunc(l.x.plan.Steps, is) }
	switch {
	case err == nil:
		return l.asked != ""
	case errors.Is(err, agentjob.ErrStopped):
		return l.asked == "drain" || l.asked == "stop"
	case errors.Is(err, agentjob.ErrLeaseLost):
		return l.lost
	case errors.Is(err, agentjob.ErrUnauthorized), errors.Is(err, agentjob.ErrForbidden):
		return has(func(s step) bool { return s.Status == http.StatusUnauthorized || s.Status == http.StatusForbidden })
	case errors.Is(err, agentjob.ErrHandlerStuck):
		return has(func(s step) bool { return s.How == "deaf" })
	default:
		return (errors.Is(err, errTrouble) || errors.Is(err, context.DeadlineExceeded)) && has(func(s step) bool { return s.Do == "store" })
	}
}

// checkReports compares events and status with what was recorded. x.mu is held.
func (l *life) checkReports() {
	x := l.x
	told := map[agentjob.End]int{}
	for _, e := range x.errands {
		found := l.endsOf(e)
		for _, event := range found {
			told[event.End]++
		}
		switch {
		case len(found) > 1, e.ender == l && len(found) == 0:
			x.breaks(reports, "task %d, %q as %s: %d times", e.number, e.record.State, e.record.End, len(found))
		case len(found) == 1 && (e.ender == l || l.err == nil) && (found[0].End != e.record.End || found[0].Status != e.record.Status && e.record.End != agentjob.EndInterrupted):
			x.breaks(reports, "task %d as %s with %d, recorded is %q as %s with %d", e.number, found[0].End, found[0].Status, e.record.State, e.record.End, e.record.Status)
		case l.err == nil && e.arrived == l && e.record.State == "":
			x.breaks(arrives, "task %d", e.number)
		}
	}
	status := l.worker.Status()
	for end, n := range status.Ends {
		told[end] -= n
	}
	for end, n := range told {
		if n != 0 {
			x.breaks(reports, "%d more events than the status counts end as %s", n, end)
		}
	}
	last := agentjob.Event{}
	if len(l.events) > 0 {
		last = l.events[len(l.events)-1]
	}
	if last.Kind != agentjob.EventStopped || !errors.Is(last.Err, l.err) || status.Phase != agentjob.PhaseStopped || !errors.Is(status.Err, l.err) {
		x.breaks(reports, "Run returned %v, the last event is %s with %v, the status %s with %v", l.err, last.Kind, last.Err, status.Phase, status.Err)
	}
	if len(status.Running) > 0 {
		x.breaks(reports, "%d tasks run after Run", len(status.Running))
	}
}

// checkAll looks at every task once all is over. x.mu is not held: nothing runs any more.
func (x *trial) checkAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	jumped := slices.ContainsFunc(x.plan.Steps, func(s step) bool { return s.Do == "jump" })
	for _, e := range x.errands {
		counts := e.message.Counts()
		if counts.Deliveries > 1 && !x.plan.Forgetful {
			x.breaks(shownOnce, "task %d: %d times", e.number, counts.Deliveries)
		}
		rec := e.record
		switch {
		case rec.State == "":
			if e.message.Status() == agentjobtest.StatusQueued {
				x.breaks(goesOn, "task %d was never claimed", e.number)
			}
			continue
		case rec.State != agentjob.StateEnded:
			x.breaks(ends, "task %d is still %q", e.number, rec.State)
			continue
		}
		if why := x.unexplained(e, jumped); why != "" {
			x.breaks(ends, "task %d (%s) as %s with %d: %s", e.number, e.step.How, rec.End, rec.Status, why)
		}
		if e.reply != nil {
			x.checkReply(e, counts)
		}
	}
}

// unexplained says what is wrong with how a task ended, "" if nothing is.
func (x *trial) unexplained(e *errand, jumped bool) string {
	rec := e.record
	saved := e.reply != nil
	late := jumped || rec.EndedAt.After(rec.Deadline.Add(-time.Second)) // as exact as the platform's dates
	switch rec.End {
	case agentjob.EndDelivered:
		if !saved {
			return "no reply was saved"
		}
	case agentjob.EndRejected:
		asLong := e.step.How == "long" && rec.Status == 0
		over := e.cancelled || late || e.message.Counts().Deliveries > 0
		if saved && !slices.Contains(e.refusals, rec.Status) || !saved && !asLong && !over {
			return "nobody refused it"
		}
	case agentjob.EndExpired:
		if !late {
			return "before its deadline"
		}
	case agentjob.EndFailed:
		if manners[e.step.How] != agentjob.EndFailed {
			return "its handler does not fail"
		}
	case agentjob.EndInterrupted:
		if !slices.ContainsFunc(e.holders, func(l *life) bool { return l.dead || l.err != nil }) {
			return "nothing interrupted it"
		}
	default:
		return "no such end"
	}
	return ""
}

// checkReply looks at the end of a saved reply. x.mu is held.
func (x *trial) checkReply(e *errand, counts agentjobtest.Counts) {
	rec := e.record
	switch rec.End {
	case agentjob.EndDelivered:
		if counts.Deliveries == 0 {
			x.breaks(delivers, "task %d is delivered, its customer has nothing", e.number)
		}
		if !rec.Content.IsZero() {
			x.breaks(keepsText, "task %d is delivered and kept", e.number)
		}
	case agentjob.EndRejected, agentjob.EndExpired:
		if !bytes.Equal(rec.Content.Response, e.reply) {
			x.breaks(keepsText, "task %d ended as %s", e.number, rec.End)
		}
	default:
		x.breaks(delivers, "task %d ended as %s", e.number, rec.End)
	}
}
