package agentjob_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A schedule is what happens to one worker: how its world is set up, and steps in virtual time. It is
// plain data, written as lines of JSON: the world first, then a line a step.
type schedule struct {
	Concurrency int  `json:"concurrency"`
	Backlog     int  `json:"backlog"`
	Resume      bool `json:"resume,omitempty"`

	Chats          int                    `json:"chats"`    // open claims the platform allows
	Deadline       span                   `json:"deadline"` // it gives a task
	Forgetful      bool                   `json:"forgetful,omitempty"`
	Shape          agentjobtest.Shape     `json:"shape,omitempty"`
	Empty          agentjobtest.EmptyPoll `json:"empty,omitempty"`
	CamelCase      bool                   `json:"camelCase,omitempty"`
	DeadlineInTask bool                   `json:"deadlineInTask,omitempty"`

	Steps []step `json:"-"`
}

// A step is one thing that happens. Which fields count depends on Do.
type step struct {
	At    span           `json:"at"`
	Do    string         `json:"do"`
	How   string         `json:"how,omitempty"`
	Task  int            `json:"task,omitempty"`  // cancel, again: which task sent so far
	Takes span           `json:"takes,omitempty"` // send: of the handler
	For   span           `json:"for,omitempty"`   // how long it lasts; jump: how far
	State agentjob.State `json:"state,omitempty"` // store: of the records that it happens to; "" all

	Route      agentjobtest.Route     `json:"route,omitempty"`
	Kind       agentjobtest.FaultKind `json:"kind,omitempty"`
	Times      int                    `json:"times,omitempty"`
	Skip       int                    `json:"skip,omitempty"`
	Delay      span                   `json:"delay,omitempty"`
	Status     int                    `json:"status,omitempty"`
	Body       string                 `json:"body,omitempty"`
	RetryAfter string                 `json:"retryAfter,omitempty"`
}

// What a handler does with a task that was sent, and what it may end as without a saved reply, beside
// what a cancel, a deadline or the end of the process make of it.
var manners = map[string]agentjob.End{
	"answer":      "",                   // after Takes, earlier with an error if its context ends
	"late":        "",                   // after Takes, also earlier when its context ends
	"deaf":        "",                   // after Takes, whatever its context says
	"talk":        "",                   // like answer, with progress every second
	"error":       agentjob.EndFailed,   // after Takes, as the following
	"panic":       agentjob.EndFailed,   //
	"goexit":      agentjob.EndFailed,   //
	"nil":         agentjob.EndFailed,   //
	"blank":       agentjob.EndFailed,   //
	"unavailable": agentjob.EndFailed,   // for For
	"long":        agentjob.EndRejected, // too long for the platform
	"unasked":     agentjob.EndFailed,   // the customer's message is blank
}

// A span is a duration that is written as Go does.
type span time.Duration

func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// String returns the lines that parseSchedule reads.
func (s schedule) String() string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, line := range append([]any{s}, anys(s.Steps)...) {
		if err := enc.Encode(line); err != nil {
			panic(err) // our own types
		}
	}
	return out.String()
}

// GoString is for rapid, which prints what it drew.
func (s schedule) GoString() string { return "\n" + s.String() }

func anys[T any](list []T) (out []any) {
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

// parseSchedule reads what String returns. What it does not know is an error.
func parseSchedule(text string) (s schedule, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf("the world: %w", err)
	}
	for {
		var next step
		if err := dec.Decode(&next); errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return s, fmt.Errorf("step %d: %w", len(s.Steps), err)
		}
		s.Steps = append(s.Steps, next)
	}
}

// deeds gives each kind of step its odds and what it draws.
var deeds = []struct {
	do   string
	odds int
	draw func(*rapid.T, *step)
}{
	{"send", 7, func(t *rapid.T, s *step) {
		s.How = draw(t, "how", "answer", "answer", "talk", "late", "deaf", "error", "panic", "goexit", "nil", "blank", "long", "unavailable", "unasked")
		s.Takes = draw(t, "takes", 0, seconds(1), seconds(7), seconds(40), minutes(3), minutes(45))
		if s.How == "unavailable" {
			s.For = draw(t, "for", 0, seconds(1), minutes(2), minutes(15))
		}
	}},
	{"cancel", 2, func(t *rapid.T, s *step) { s.Task = rapid.IntRange(0, 5).Draw(t, "task") }},
	{"again", 2, func(t *rapid.T, s *step) { s.Task = rapid.IntRange(0, 5).Draw(t, "task") }},
	{"fault", 6, drawFault},
	{"jump", 1, func(t *rapid.T, s *step) {
		s.For = draw(t, "for", minutes(1), minutes(-1), minutes(40), minutes(-40), minutes(1500), minutes(-1500))
	}},
	{"store", 3, func(t *rapid.T, s *step) {
		s.How = draw(t, "how", "fail", "slow", "hang", "hang, then write")
		s.State = draw(t, "state", "", agentjob.StateClaimed, agentjob.StateSaved, agentjob.StateEnded)
		s.For = draw(t, "for", seconds(1), seconds(20), minutes(3))
	}},
	{"ready", 1, func(t *rapid.T, s *step) {
		s.How = draw(t, "how", "fail", "hang", "panic", "deaf")
		s.For = draw(t, "for", seconds(1), seconds(20), minutes(3))
	}},
	{"acquire", 1, func(t *rapid.T, s *step) {
		s.How = draw(t, "how", "fail", "hang", "panic")
		s.For = draw(t, "for", seconds(1), seconds(20), minutes(3))
	}},
	{"drain", 1, func(*rapid.T, *step) {}},
	{"stop", 1, func(*rapid.T, *step) {}},
	{"lose lease", 1, func(*rapid.T, *step) {}},
	{"crash", 1, func(*rapid.T, *step) {}},
	{"crash at write", 2, func(t *rapid.T, s *step) {
		s.How = draw(t, "how", "before", "after")
		s.State = draw(t, "state", agentjob.StateClaimed, agentjob.StateSaved, agentjob.StateEnded)
		s.Skip = rapid.IntRange(0, 2).Draw(t, "skip")
	}},
	{"crash at request", 2, func(t *rapid.T, s *step) {
		s.How = draw(t, "how", "before", "after")
		s.Route = draw(t, "route", workerRoutes...)
		s.Skip = rapid.IntRange(0, 3).Draw(t, "skip")
	}},
}

var workerRoutes = []agentjobtest.Route{
	agentjobtest.RouteRespond, agentjobtest.RoutePoll, agentjobtest.RouteProgress,
	agentjobtest.RouteHeartbeat, agentjobtest.RouteReportProgress, agentjobtest.RouteMe,
}

func drawFault(t *rapid.T, s *step) {
	s.Route = draw(t, "route", append(workerRoutes, agentjobtest.RouteRespond, agentjobtest.RouteRespond, agentjobtest.RoutePoll)...)
	s.Kind = draw(t, "kind", agentjobtest.Answer, agentjobtest.AnswerAfter, agentjobtest.Slow, agentjobtest.CutBefore,
		agentjobtest.CutAfter, agentjobtest.Truncate, agentjobtest.Redirect, agentjobtest.WrongTaskID, agentjobtest.Endless)
	s.Times = draw(t, "times", 1, 2, 5, 0)
	s.Skip = draw(t, "skip", 0, 0, 1, 3)
	s.Delay = draw(t, "delay", 0, 0, seconds(2), seconds(20), minutes(3))
	switch s.Kind {
	case agentjobtest.Redirect:
		s.Body = "http://other.test/"
	case agentjobtest.Endless:
		s.Times = 1 // they are long
	case agentjobtest.Answer, agentjobtest.AnswerAfter:
		s.Status = draw(t, "status", 500, 503, 504, 429, 404, 409, 403, 401, 400, 422, 200)
		s.Body = draw(t, "body", "", `{"error":"x"}`, "<html>", `{"ok":false}`, `{"ok":tr`, "[]", "{}")
		s.RetryAfter = draw(t, "retry after", "", "", "5", "90", "soon", "Fri, 31 Dec 9999 23:59:59 GMT")
		// What says yes to a reply without the platform's knowing is a lie that no worker can see
		// through; so is what calls a reply accepted as something that was refused.
		if s.Status == 200 && s.Route == agentjobtest.RouteRespond {
			s.Kind = agentjobtest.Answer
			if s.Body != "<html>" && s.Body != `{"ok":tr` {
				s.Body = `{"ok":false}`
			}
		}
	}
}

// draw draws one of a few values; rapid prefers the first ones when it shrinks.
func draw[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func seconds(n int) span { return span(time.Duration(n) * time.Second) }
func minutes(n int) span { return span(time.Duration(n) * time.Minute) }

var schedules = rapid.Custom(func(t *rapid.T) schedule {
	s := schedule{
		Concurrency:    draw(t, "concurrency", 1, 2, 5),
		Backlog:        draw(t, "backlog", 100, 2, 1, 1),
		Resume:         rapid.Bool().Draw(t, "resume"),
		Chats:          draw(t, "chats", 100, 2),
		Deadline:       draw(t, "deadline", minutes(30), minutes(5), seconds(50)),
		Forgetful:      draw(t, "forgetful", false, false, false, true),
		Shape:          draw(t, "shape", agentjobtest.Native, agentjobtest.Bare, agentjobtest.Data, agentjobtest.OKData, agentjobtest.DataTask),
		Empty:          draw(t, "empty", agentjobtest.NullTask, agentjobtest.EmptyObject, agentjobtest.NoContent, agentjobtest.EmptyBody),
		CamelCase:      rapid.Bool().Draw(t, "camelCase"),
		DeadlineInTask: rapid.Bool().Draw(t, "deadlineInTask"),
		Steps:          rapid.SliceOfN(steps, 1, 24).Draw(t, "steps"),
	}
	slices.SortStableFunc(s.Steps, func(a, b step) int { return cmp.Compare(a.At, b.At) })
	return s
})

var steps = rapid.Custom(func(t *rapid.T) step {
	var lots []int
	for i, d := range deeds {
		lots = append(lots, slices.Repeat([]int{i}, d.odds)...)
	}
	deed := deeds[rapid.SampledFrom(lots).Draw(t, "do")]
	s := step{Do: deed.do, At: seconds(rapid.IntRange(0, 900).Draw(t, "at"))}
	deed.draw(t, &s)
	return s
})
