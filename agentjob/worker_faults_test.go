package agentjob_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// Whatever goes wrong on whichever route, for a while: customers get their replies once, no
// handler runs twice, and the platform is not hammered.
func TestEveryFaultOnEveryRoute(t *testing.T) {
	routes := []agentjobtest.Route{
		agentjobtest.RouteMe, agentjobtest.RouteHeartbeat, agentjobtest.RoutePoll,
		agentjobtest.RouteProgress, agentjobtest.RouteReportProgress, agentjobtest.RouteRespond,
	}
	faults := map[string]agentjobtest.Fault{
		"503 HTML":    {Status: 503, Body: "<html>", ContentType: "text/html"},
		"200 HTML":    {Status: 200, Body: "<html>", ContentType: "text/html"},
		"404 HTML":    {Status: 404, Body: "<html>", ContentType: "text/html"},
		"500 nothing": {Status: 500},
		"429":         {Status: 429, Body: `{"error":"slow down"}`, RetryAfter: "20"},
		"200 []":      {Status: 200, Body: `[]`},
		"cut before":  {Kind: agentjobtest.CutBefore},
		"cut after":   {Kind: agentjobtest.CutAfter},
		"truncated":   {Kind: agentjobtest.Truncate},
		"endless":     {Kind: agentjobtest.Endless},
		"redirect":    {Kind: agentjobtest.Redirect, Body: "http://other.test/"},
		"hanging":     {Kind: agentjobtest.Slow, Delay: 3 * time.Minute},
	}
	for _, route := range routes {
		for name, fault := range faults {
			if route == agentjobtest.RouteRespond && name == "200 []" {
				continue // any JSON that does not say no is acceptance
			}
			t.Run(fmt.Sprintf("%s/%s", route, name), func(t *testing.T) {
				inWorld(t, func(w *world) {
					// A lost claim stays open on the platform until its deadline.
					w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
					fault.Route, fault.Times = route, 4
					w.srv.Inject(fault)
					h := counting(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
						task.Progress("working", nil)
						w.pass(7 * time.Second)
						return echo(ctx, task)
					})
					r := w.run(h.handle, func(c *agentjob.Config) { c.Concurrency = 5 })
					var all []*agentjobtest.Message
					for range 8 {
						all = append(all, w.send("Hello"))
						w.pass(time.Minute)
					}
					w.pass(15 * time.Minute)
					require.NoError(t, r.end())
					lost := 0
					for _, m := range all {
						require.LessOrEqual(t, h.count(m.ID), 1)
						require.Equal(t, h.count(m.ID), m.Counts().Deliveries, "what was made is delivered, once")
						if h.count(m.ID) == 0 {
							lost++ // its claim's answer was lost on the way
						}
					}
					if route == agentjobtest.RoutePoll {
						require.LessOrEqual(t, lost, 4)
					} else {
						require.Zero(t, lost)
					}
					require.Less(t, len(w.srv.Requests()), 700, "23 minutes: no hot loop")
				})
			})
		}
	}
}

// A refused key says nothing about the reply: it waits for a key that is good.
func TestRefusedKeyIsNoRefusalOfTheReply(t *testing.T) {
	inWorld(t, func(w *world) {
		fault := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.Answer, Status: 401, Body: `{"error":"bad key"}`})
		m := w.send("hello")
		first := w.run(counting(echo).handle)
		w.claimed(m)
		w.pass(time.Minute)
		first.Stop()
		require.ErrorIs(t, first.wait(), agentjob.ErrUnauthorized)
		require.Equal(t, agentjob.StateSaved, w.record(m.ID).State)

		fault.Clear()
		second := w.run(untilDone)
		require.Equal(t, "You said: hello", w.reply(m))
		require.NoError(t, second.end())
		require.Equal(t, agentjob.EndDelivered, w.record(m.ID).End)
	})
}
