package main

import (
	"context"
	"time"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A trouble is a way in which requests go wrong.
type trouble struct {
	name     string
	fault    agentjobtest.Fault
	accepted bool // the platform has processed the request, and the provider is not told so
}

var troubles = []trouble{
	{"500", agentjobtest.Fault{Status: 500}, false},
	{"429", agentjobtest.Fault{Status: 429, RetryAfter: "1", Body: `{"error":"slow down"}`}, false},
	{"503", agentjobtest.Fault{Status: 503, Body: "<html>", ContentType: "text/html"}, false},
	{"200 HTML", agentjobtest.Fault{Status: 200, Body: "<html>", ContentType: "text/html"}, false},
	{"503 although processed", agentjobtest.Fault{Kind: agentjobtest.AnswerAfter, Status: 503}, true},
	{"slow", agentjobtest.Fault{Kind: agentjobtest.Slow, Delay: 300 * time.Millisecond}, false},
	{"cut before", agentjobtest.Fault{Kind: agentjobtest.CutBefore}, false},
	{"cut after", agentjobtest.Fault{Kind: agentjobtest.CutAfter}, true},
	{"truncated", agentjobtest.Fault{Kind: agentjobtest.Truncate}, true},
	{"endless", agentjobtest.Fault{Kind: agentjobtest.Endless}, true},
	{"redirect", agentjobtest.Fault{Kind: agentjobtest.Redirect}, false},
	{"wrong task id", agentjobtest.Fault{Kind: agentjobtest.WrongTaskID}, true},
}

var routes = []agentjobtest.Route{
	agentjobtest.RouteMe, agentjobtest.RouteHeartbeat, agentjobtest.RoutePoll,
	agentjobtest.RouteProgress, agentjobtest.RouteReportProgress, agentjobtest.RouteRespond,
}

// faultRows are every trouble on every route, without and with a kill while it lasts; and, of the
// unforgiving platform, those of the one route on which that shows.
func faultRows() (rows []row) {
	for _, route := range routes {
		for _, t := range troubles {
			rows = append(rows, t.passes("fault: ", route), t.lasts("fault and kill: ", route))
		}
	}
	for _, t := range troubles {
		for _, r := range []row{
			t.passes("fault, no idempotency: ", agentjobtest.RouteRespond),
			t.lasts("fault and kill, no idempotency: ", agentjobtest.RouteRespond),
		} {
			r.unforgiving, r.window = true, t.accepted
			rows = append(rows, r)
		}
	}
	return rows
}

func (t trouble) on(w *world, route agentjobtest.Route, times int) *agentjobtest.Injection {
	f := t.fault
	f.Route, f.Times = route, times
	if f.Kind == agentjobtest.Redirect {
		f.Body = w.platform.URL + "/elsewhere"
	}
	return w.fail(f)
}

// losesClaims reports whether a poll hands out a task and its answer does not tell which.
func (t trouble) losesClaims() bool { return t.accepted && t.fault.Kind != agentjobtest.WrongTaskID }

// passes is a trouble of two requests.
func (t trouble) passes(group string, route agentjobtest.Route) row {
	return row{name: group + t.name + " on " + string(route), share: 5, play: func(ctx context.Context, w *world) error {
		fault := t.on(w, route, 2)
		fate := delivered
		if route == agentjobtest.RoutePoll && t.losesClaims() {
			fate = unrecorded
		}
		q, err := w.ask(fate)
		if err != nil {
			return err
		}
		if _, err := w.serve(ctx); err != nil {
			return err
		}
		if fate != delivered {
			// The second poll is held by the platform, and must not take what is asked next with it.
			return w.platform.Await(ctx, route, 2)
		}
		if err := met(ctx, fault); err != nil {
			return err
		}
		_, err = q.WaitReply(ctx)
		return err
	}}
}

// lasts is a trouble during which the provider is killed.
func (t trouble) lasts(group string, route agentjobtest.Route) row {
	allows := map[agentjobtest.Route][]fate{
		agentjobtest.RouteMe:             {delivered},
		agentjobtest.RouteHeartbeat:      {delivered, interrupted, unrecorded}, // beside it, the task goes its way
		agentjobtest.RoutePoll:           {delivered},
		agentjobtest.RouteProgress:       {interrupted, unrecorded}, // beside the record of the claim
		agentjobtest.RouteReportProgress: {interrupted, delivered},
		agentjobtest.RouteRespond:        {delivered},
	}[route]
	switch {
	case route == agentjobtest.RoutePoll && t.losesClaims():
		allows = are(unrecorded, delivered) // delivered if the provider died before the platform had looked
	case t.fault.Kind == agentjobtest.WrongTaskID && route != agentjobtest.RouteRespond, // which the others do without
		route == agentjobtest.RouteProgress && t.fault.Kind != agentjobtest.Slow:
		allows = are(delivered, interrupted, unrecorded) // the task goes on
	}
	return row{name: group + t.name + " on " + string(route), share: 5, play: func(ctx context.Context, w *world) error {
		if t.fault.Kind == agentjobtest.Slow {
			t.fault.Delay = time.Hour
		}
		fault := t.on(w, route, 0)
		if _, err := w.ask(allows...); err != nil {
			return err
		}
		c, err := w.start(ctx, moment{})
		if err != nil {
			return err
		}
		if err := met(ctx, fault); err != nil {
			return err
		}
		if err := pause(ctx, 4*sway()); err != nil {
			return err
		}
		c.kill()
		w.running = nil
		return nil
	}}
}

// met waits until the fault has struck.
func met(ctx context.Context, fault *agentjobtest.Injection) error {
	for fault.Count() == 0 {
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
