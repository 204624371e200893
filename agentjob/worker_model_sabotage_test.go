package agentjob_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A sabotage breaks a promise behind the model's back. Its zero value leaves the worker as it is.
type sabotage struct {
	config      func(*agentjob.Config)                    // what the worker gets
	transport   func(http.RoundTripper) http.RoundTripper // between the worker and what the model sees
	platform    func(*agentjobtest.Settings)
	neverDrains bool
}

// A tampered store alters what is put, or drops it without a word, as alter says.
type tampered struct {
	agentjob.Store
	alter func(*agentjob.Record) (drop bool)
}

type tamperedLease struct {
	agentjob.Lease
	store tampered
}

func (s tampered) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	return tamperedLease{lease, s}, err
}

func (l tamperedLease) Put(ctx context.Context, rec agentjob.Record) error {
	if l.store.alter(&rec) {
		return nil
	}
	return l.Lease.Put(ctx, rec)
}

func tampering(alter func(*agentjob.Record) (drop bool)) sabotage {
	return sabotage{config: func(c *agentjob.Config) { c.Store = tampered{c.Store, alter} }}
}

func dropping(state agentjob.State) sabotage {
	return tampering(func(rec *agentjob.Record) bool { return rec.State == state })
}

// A proxy sees every request with its route and may do with it what it likes.
type proxy func(route agentjobtest.Route, req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error)

func proxying(p proxy) sabotage {
	return sabotage{transport: func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			route, _ := routeOf(req)
			return p(route, req, next.RoundTrip)
		})
	}}
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// again returns a request that can be sent once more, with other bytes at its end.
func again(req *http.Request, more string) *http.Request {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(err) // of bytes in memory
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	twin := req.Clone(req.Context())
	twin.Body, twin.ContentLength = io.NopCloser(strings.NewReader(string(body)+more)), int64(len(body)+len(more))
	return twin
}

func answerOf(body string) *http.Response {
	return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

var looped atomic.Bool // one hot loop is enough

// Saboteurs that the model must catch, each by the promise that it breaks.
var saboteurs = map[string]struct {
	promise string
	sabotage
}{
	"a handler that is called twice": {runsOnce, sabotage{config: func(c *agentjob.Config) {
		h := c.Handler
		c.Handler = agentjob.HandlerFunc(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			if reply, err := h.Handle(ctx, task); err != nil {
				return reply, err
			}
			return h.Handle(ctx, task)
		})
	}}},
	"a resumption that is not counted": {runsOnce, sabotage{config: func(c *agentjob.Config) {
		if resume := c.Resume; resume != nil {
			c.Resume = func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
				task.Resumed = 0
				return resume(ctx, task)
			}
		}
	}}},
	"a store that drops claims":  {claimedFirst, dropping(agentjob.StateClaimed)},
	"a store that drops replies": {savedFirst, dropping(agentjob.StateSaved)},
	"a store that drops ends":    {ends, dropping(agentjob.StateEnded)},
	"a store that drops the text of refused replies": {keepsText, tampering(func(rec *agentjob.Record) bool {
		if rec.State == agentjob.StateEnded {
			rec.Content = agentjob.Content{}
		}
		return false
	})},
	"a store that keeps the text of all replies": {keepsText, func() sabotage {
		texts := map[string]agentjob.Content{}
		return tampering(func(rec *agentjob.Record) bool {
			if rec.State == agentjob.StateSaved {
				texts[rec.TaskID] = rec.Content
			}
			if rec.State == agentjob.StateEnded {
				rec.Content = texts[rec.TaskID]
			}
			return false
		})
	}()},
	"a store that calls a delivered task failed": {delivers, tampering(func(rec *agentjob.Record) bool {
		if rec.End == agentjob.EndDelivered {
			rec.End = agentjob.EndFailed
		}
		return false
	})},
	"a store that hides its failures": {onlyWhenAble, sabotage{config: func(c *agentjob.Config) { c.Store = unfailing{c.Store} }}},
	"a task that is lost between the poll and its record": {arrives, proxying(func(route agentjobtest.Route, req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		resp, err := next(req)
		if err != nil || route != agentjobtest.RoutePoll {
			return resp, err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return nil, err
		}
		return answerOf("{}"), resp.Body.Close()
	})},
	"bytes that change on their way": {sameBytes, proxying(func(route agentjobtest.Route, req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if route == agentjobtest.RouteRespond {
			req = again(req, " ")
		}
		return next(req)
	})},
	"a reply that is sent again after its acceptance": {sentNoMore, proxying(func(route agentjobtest.Route, req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if route != agentjobtest.RouteRespond {
			return next(req)
		}
		twin := again(req, "")
		if resp, err := next(req); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil {
				return nil, err
			}
		}
		return next(twin)
	})},
	"an acceptance that the platform did not give": {delivers, proxying(func(route agentjobtest.Route, req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if route == agentjobtest.RouteRespond {
			return answerOf("{}"), nil
		}
		return next(req)
	})},
	"a heartbeat that is two hundred": {noHotLoop, proxying(func(route agentjobtest.Route, req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if route == agentjobtest.RouteHeartbeat && looped.CompareAndSwap(false, true) {
			for range 205 {
				resp, err := next(again(req, ""))
				if err != nil {
					return nil, err
				}
				_ = resp.Body.Close() // dropped, as a hot loop does
			}
		}
		return next(req)
	})},
	"a platform without memory": {shownOnce, sabotage{platform: func(s *agentjobtest.Settings) { s.NoResponseIdempotency = true }}},
	"a Ready that is not heeded": {onlyWhenAble, sabotage{config: func(c *agentjob.Config) {
		ready := c.Ready
		c.Ready = func(ctx context.Context) error { _ = ready(ctx); return nil }
	}}},
	"a backlog that may grow":     {onlyWhenAble, sabotage{config: func(c *agentjob.Config) { c.Backlog = 1000 }}},
	"more at once than wanted":    {withinSlots, sabotage{config: func(c *agentjob.Config) { c.Concurrency = 5 }}},
	"capacity that is not got":    {withinSlots, sabotage{config: func(c *agentjob.Config) { c.Acquire = nil }}},
	"a drain that is not heard":   {endsInTime, sabotage{neverDrains: true}},
	"ends that are not told":      {reports, observing(agentjob.EventEnded, 0)},
	"ends that are told twice":    {reports, observing(agentjob.EventEnded, 2)},
	"a Run whose end is not told": {reports, observing(agentjob.EventStopped, 0)},
	"a worker that does not recover": {goesOn, sabotage{config: func(c *agentjob.Config) {
		ready, failed := c.Ready, error(nil)
		c.Ready = func(ctx context.Context) error {
			failed = errors.Join(failed, ready(ctx))
			return failed
		}
	}}},
}

// An unfailing store says that every write went well.
type unfailing struct{ agentjob.Store }

type unfailingLease struct{ agentjob.Lease }

func (s unfailing) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	return unfailingLease{lease}, err
}

func (l unfailingLease) Put(ctx context.Context, rec agentjob.Record) error {
	if err := l.Lease.Put(ctx, rec); errors.Is(err, agentjob.ErrLeaseLost) {
		return err
	}
	return nil
}

func observing(kind agentjob.EventKind, times int) sabotage {
	return sabotage{config: func(c *agentjob.Config) {
		observe := c.Observe
		c.Observe = func(e agentjob.Event) {
			n := 1
			if e.Kind == kind {
				n = times
			}
			for range n {
				observe(e)
			}
		}
	}}
}

// A model that can't fail shows nothing: each promise, broken, is seen to be within a few schedules.
func TestModelCatchesEveryBrokenPromise(t *testing.T) {
	looped.Store(false)
	unbroken := map[string]bool{}
	for _, promise := range promises {
		unbroken[promise] = true
	}
	for name, s := range saboteurs {
		delete(unbroken, s.promise)
		t.Run(name, func(t *testing.T) {
			const enough = 1000
			for seed := range enough {
				for _, broken := range schedules.Example(seed).run(t, s.sabotage) {
					if strings.HasPrefix(broken, s.promise) {
						t.Logf("schedule %d: %s", seed, broken)
						return
					}
				}
			}
			t.Fatalf("%d schedules, and the model did not see it", enough)
		})
	}
	require.Empty(t, unbroken, "promises that nobody breaks")
}

// A broken promise comes with a schedule of the few steps that it needs, unless it is broken by so rare
// a race that it can't be had again: so a few seeds are tried.
func TestModelShrinksASchedule(t *testing.T) {
	set := func(name, value string) {
		old := flag.Lookup(name).Value.String()
		require.NoError(t, flag.Set(name, value))
		t.Cleanup(func() { require.NoError(t, flag.Set(name, old)) })
	}
	set("rapid.nofailfile", "true")
	set("rapid.checks", "300")
	set("rapid.shrinktime", "5s")
	forgetful := saboteurs["a platform without memory"].sabotage
	var logs []string
	for seed := range 5 {
		set("rapid.seed", strconv.Itoa(seed+1))
		s, log := shrunk(t, forgetful)
		broken := strings.Join(s.replay(t, forgetful, 100), "\n")
		// Two are enough: a task, and what keeps its acceptance from the worker. A schedule has up to 24.
		if len(s.Steps) <= 10 && strings.Contains(broken, shownOnce) {
			t.Logf("shrunk to\n%s", s)
			return
		}
		logs = append(logs, log)
	}
	t.Fatal(strings.Join(logs, "\n"))
}

// shrunk is the schedule that a failing check ends with.
func shrunk(t *testing.T, by sabotage) (s schedule, log string) {
	tb := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // which a failed check ends
		defer close(done)
		rapid.Check(tb, checked(t, by))
	}()
	<-done
	require.True(t, tb.failed)
	log = tb.log.String()
	_, text, found := strings.Cut(log[max(0, strings.LastIndex(log, "draw schedule: ")):], "\n")
	require.True(t, found, log)
	s, err := parseSchedule(text[:strings.LastIndex(text, "}")+1])
	require.NoError(t, err, log)
	return s, log
}

// A recorder takes the failure of a check in place of the test.
type recorder struct {
	rapid.TB
	failed bool
	log    strings.Builder
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	fmt.Fprintf(&r.log, format+"\n", args...)
}
func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.log, format+"\n", args...) }
func (r *recorder) Log(args ...any)                 { fmt.Fprintln(&r.log, args...) }
func (r *recorder) Fail()                           { r.failed = true }
func (r *recorder) Failed() bool                    { return r.failed }
func (r *recorder) FailNow()                        { r.failed = true; runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.FailNow()
}
