package agentjob_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestNothingIsClaimedWhileNotReady(t *testing.T) {
	inWorld(t, func(w *world) {
		var ready atomic.Bool
		var inside, calls atomic.Int32
		r := w.run(echo, func(c *agentjob.Config) {
			c.Ready = func(context.Context) error {
				require.EqualValues(t, 1, inside.Add(1), "one call at a time")
				defer inside.Add(-1)
				calls.Add(1)
				if !ready.Load() {
					return errHandler
				}
				return nil
			}
		})
		m := w.send("Hello")
		w.pass(10 * time.Minute)
		require.Zero(t, w.agent.Beats())
		require.Zero(t, w.requests(agentjobtest.RoutePoll))
		require.Greater(t, calls.Load(), int32(10))
		require.Contains(t, r.Status().Waiting, "not ready")

		ready.Store(true)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.True(t, r.Status().Open)
		ready.Store(false)
		w.pass(time.Minute)
		polls, beats := w.requests(agentjobtest.RoutePoll), w.agent.Beats()
		w.pass(10 * time.Minute)
		require.Equal(t, polls, w.requests(agentjobtest.RoutePoll))
		require.Equal(t, beats, w.agent.Beats())
		require.NoError(t, r.end())
	})
}

func TestUnavailableStopsClaimingWhileSavedRepliesGoOut(t *testing.T) {
	inWorld(t, func(w *world) {
		outage := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
		var probes atomic.Int32
		var broken atomic.Bool
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			if broken.Load() {
				return nil, agentjob.Unavailable(errHandler, 10*time.Minute)
			}
			return echo(ctx, task)
		}, func(c *agentjob.Config) {
			c.Ready = func(context.Context) error {
				probes.Add(1)
				if broken.Load() {
					return errHandler
				}
				return nil
			}
		})
		saved := w.send("Hello")
		w.pass(10 * time.Second)
		broken.Store(true)
		failed := w.send("quota")
		w.pass(time.Second)
		require.Contains(t, r.Status().Waiting, "circuit open")
		polls, beats, before := w.requests(agentjobtest.RoutePoll), w.agent.Beats(), probes.Load()
		outage.Clear()
		require.Equal(t, "You said: Hello", w.reply(saved))
		w.pass(9 * time.Minute)
		require.Equal(t, polls, w.requests(agentjobtest.RoutePoll))
		require.Equal(t, beats, w.agent.Beats())
		require.Equal(t, before, probes.Load(), "no probe before the time")
		w.pass(5 * time.Minute)
		require.Greater(t, probes.Load(), before)
		broken.Store(false)
		require.Equal(t, "You said: back", w.reply(w.send("back")))
		require.NoError(t, r.end())
		require.Equal(t, agentjob.EndFailed, w.record(failed.ID).End)
	})
}

func TestBacklogLimitStopsClaiming(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
		outage := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
		r := w.run(echo, func(c *agentjob.Config) { c.Backlog = 3 })
		var all []*agentjobtest.Message
		for range 10 {
			all = append(all, w.send("Hello"))
		}
		w.pass(5 * time.Minute)
		require.InDelta(t, 3, r.Status().Backlog, 1)
		require.Contains(t, r.Status().Waiting, "backlog full")
		outage.Clear()
		for _, m := range all {
			require.Equal(t, "You said: Hello", w.reply(m))
		}
		w.pass(time.Minute)
		require.True(t, w.agent.Online())
		require.NoError(t, r.end())
	})
}

func TestConcurrencyAndCapacityAreTakenBeforeAClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
		var running, most, held atomic.Int32
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			require.GreaterOrEqual(t, held.Load(), running.Load())
			w.pass(time.Second)
			return echo(ctx, task)
		}, func(c *agentjob.Config) {
			c.Concurrency = 3
			c.Acquire = func(context.Context) (func(), error) {
				held.Add(1)
				return func() { held.Add(-1) }, nil
			}
		})
		var all []*agentjobtest.Message
		for range 12 {
			all = append(all, w.send("Hello"))
		}
		for _, m := range all {
			w.reply(m)
		}
		require.NoError(t, r.end())
		require.EqualValues(t, 3, most.Load())
		require.Zero(t, held.Load(), "every capacity was released")
	})
}

func TestNothingIsPolledWithoutCapacity(t *testing.T) {
	inWorld(t, func(w *world) {
		var full atomic.Bool
		full.Store(true)
		r := w.run(echo, func(c *agentjob.Config) {
			c.Acquire = func(context.Context) (func(), error) {
				if full.Load() {
					return nil, errHandler
				}
				return nil, nil
			}
		})
		m := w.send("Hello")
		w.pass(5 * time.Minute)
		require.Zero(t, w.requests(agentjobtest.RoutePoll))
		require.ErrorIs(t, r.Status().LastError, errHandler)
		full.Store(false)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
	})
}
