package agentjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestDrainFinishesAndDeliversWhatIsRunning(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			select {
			case <-time.After(20 * time.Second):
				return echo(ctx, task)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		m, later := w.send("Hello"), w.send("Too late")
		require.NoError(t, m.WaitClaim(context.Background()))
		beats := w.agent.Beats()
		require.NoError(t, r.end())
		require.Equal(t, "You said: Hello", w.reply(m))
		require.Equal(t, beats, w.agent.Beats(), "no heartbeat while draining")
		require.Equal(t, agentjobtest.StatusQueued, later.Status(), "nothing is claimed while draining")
	})
}

func TestEndOfRunsContextDrainsAndThenStops(t *testing.T) {
	inWorld(t, func(w *world) {
		var cause error
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, cause
		}, func(c *agentjob.Config) { c.DrainTimeout = 7 * time.Second })
		m := w.send("Hello")
		w.pass(time.Minute)
		r.cancel()
		asked := time.Now()
		require.ErrorIs(t, r.wait(), agentjob.ErrStopped)
		require.Equal(t, 7*time.Second, time.Since(asked))
		require.ErrorIs(t, cause, agentjob.ErrStopped)
		require.Equal(t, agentjob.EndInterrupted, w.record(m.ID).End)
	})
}

func TestStopKeepsAReplyThatIsFinishedInTheGrace(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			<-ctx.Done()
			return echo(ctx, task)
		})
		m := w.send("Hello")
		w.pass(time.Minute)
		r.Stop()
		require.ErrorIs(t, r.wait(), agentjob.ErrStopped)
		require.Equal(t, agentjob.StateSaved, w.record(m.ID).State)
		r = w.run(echo)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
	})
}

func TestHandlerThatIgnoresItsContextEndsRun(t *testing.T) {
	inWorld(t, func(w *world) {
		release := make(chan struct{})
		defer close(release)
		r := w.run(func(context.Context, *agentjob.Task) (*agentjob.Reply, error) {
			<-release
			return nil, errHandler
		})
		m := w.send("Hello")
		w.pass(time.Minute)
		m.Cancel()
		cancelled := time.Now()
		require.ErrorIs(t, r.wait(), agentjob.ErrHandlerStuck)
		require.LessOrEqual(t, time.Since(cancelled), 16*time.Second, "5 s to notice, 10 s grace")
		require.Equal(t, agentjob.EndRejected, w.record(m.ID).End)
	})
}

func TestReadyAndAcquireThatIgnoreTheirContextEndRun(t *testing.T) {
	for name, change := range map[string]func(*agentjob.Config, chan struct{}){
		"Ready": func(c *agentjob.Config, release chan struct{}) {
			c.Ready = func(context.Context) error { <-release; return nil }
		},
		"Acquire": func(c *agentjob.Config, release chan struct{}) {
			c.Acquire = func(context.Context) (func(), error) { <-release; return nil, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				release := make(chan struct{})
				defer close(release)
				r := w.run(echo, func(c *agentjob.Config) { change(c, release) })
				w.pass(time.Minute)
				err := r.end()
				require.ErrorIs(t, err, agentjob.ErrHandlerStuck)
				require.ErrorContains(t, err, name)
			})
		})
	}
}

func TestHandlersFailureEndsThatTaskOnly(t *testing.T) {
	for name, c := range map[string]struct {
		handler agentjob.HandlerFunc
		is      error
	}{
		"error":   {func(context.Context, *agentjob.Task) (*agentjob.Reply, error) { return nil, errHandler }, errHandler},
		"panic":   {func(context.Context, *agentjob.Task) (*agentjob.Reply, error) { panic("canary chat text") }, agentjob.ErrHandlerPanic},
		"goexit":  {func(context.Context, *agentjob.Task) (*agentjob.Reply, error) { runtime.Goexit(); return nil, nil }, nil},
		"nothing": {func(context.Context, *agentjob.Task) (*agentjob.Reply, error) { return nil, nil }, nil},
		"blank":   {func(context.Context, *agentjob.Task) (*agentjob.Reply, error) { return agentjob.Text(" \n"), nil }, nil},
		"invalid": {func(context.Context, *agentjob.Task) (*agentjob.Reply, error) { return agentjob.Text("a\xff"), nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
					if task.LastUserText() == "fail" {
						return c.handler(ctx, task)
					}
					return echo(ctx, task)
				})
				bad := w.send("fail")
				require.Equal(t, "You said: Hello", w.reply(w.send("Hello")))
				require.NoError(t, r.end())
				ended := w.seen(agentjob.EventEnded)
				require.Equal(t, agentjob.EndFailed, ended[0].End)
				require.Error(t, ended[0].Err)
				if c.is != nil {
					require.ErrorIs(t, ended[0].Err, c.is)
				}
				require.Equal(t, agentjobtest.StatusProcessing, bad.Status(), "nothing was sent")
				require.NotContains(t, w.log.String(), "canary")
			})
		})
	}
}

func TestReplyOverThePlatformsLimitIsKeptWhole(t *testing.T) {
	inWorld(t, func(w *world) {
		long := strings.Repeat("\U0001F600", agentjob.MaxReplyUnits/2) + "x"
		r := w.run(func(context.Context, *agentjob.Task) (*agentjob.Reply, error) { return agentjob.Text(long), nil })
		m := w.send("Hello")
		w.pass(time.Minute)
		require.NoError(t, r.end())
		rec := w.record(m.ID)
		require.Equal(t, agentjob.EndRejected, rec.End)
		require.ErrorIs(t, w.seen(agentjob.EventEnded)[0].Err, agentjob.ErrReplyTooLong)
		var sent struct{ Text string }
		require.NoError(t, json.Unmarshal(rec.Content.Response, &sent))
		require.Equal(t, long, sent.Text)
		require.Zero(t, w.requests(agentjobtest.RouteRespond))
	})
}

func TestCustomersCancelReachesTheHandlerAndKeepsALateReply(t *testing.T) {
	for _, status := range []string{"cancelled", "canceled", "failed"} {
		t.Run(status, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var cause error
				r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return echo(ctx, task)
				})
				m := w.send("Hello")
				w.pass(time.Second)
				w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Status: 200, Body: `{"status":"` + status + `"}`})
				m.Cancel()
				w.pass(6 * time.Second)
				require.NoError(t, r.end())
				require.ErrorIs(t, cause, agentjob.ErrTaskCancelled)
				rec := w.record(m.ID)
				require.Equal(t, agentjob.EndRejected, rec.End)
				require.JSONEq(t, `{"text":"You said: Hello"}`, string(rec.Content.Response))
				require.Zero(t, w.requests(agentjobtest.RouteRespond), "a late reply is not sent")
			})
		})
	}
}

func TestDeadlineComesFromThePlatform(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.Deadline = 2 * time.Minute })
		var cause error
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, cause
		})
		m := w.send("Hello")
		require.NoError(t, m.WaitClaim(context.Background()))
		claimed := time.Now()
		for len(w.ends()) == 0 {
			w.pass(time.Second)
		}
		require.InDelta(t, 120, time.Since(claimed).Seconds(), 2)
		require.NoError(t, r.end())
		require.ErrorIs(t, cause, agentjob.ErrTaskExpired)
		require.Equal(t, agentjob.EndExpired, w.record(m.ID).End)
	})
}

func TestDeadlineIsLearntLateWhenThePlatformDidNotTellAtFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.Deadline = 2 * time.Minute })
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Status: 503, Times: 3})
		r := w.run(untilDone)
		m := w.send("Hello")
		w.pass(3 * time.Minute)
		require.NoError(t, r.end())
		require.Equal(t, agentjob.EndExpired, w.record(m.ID).End)
	})
}

func TestSavedReplyExpiresAtItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
		r := w.run(echo)
		m := w.send("Hello")
		w.pass(29 * time.Minute)
		require.Equal(t, agentjob.StateSaved, w.record(m.ID).State, "tried until the deadline")
		w.pass(3 * time.Minute)
		require.NoError(t, r.end())
		rec := w.record(m.ID)
		require.Equal(t, agentjob.EndExpired, rec.End)
		require.False(t, rec.Content.IsZero(), "the text is kept for the operator")
	})
}

func TestProgressSendsTheNewestEveryThreeSeconds(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			for i := range 100 {
				task.Progress(fmt.Sprintf("step %d", i), new(i))
				w.pass(100 * time.Millisecond)
			}
			return echo(ctx, task)
		})
		m := w.send("Hello")
		w.reply(m)
		require.NoError(t, r.end())
		require.Equal(t, 4, w.requests(agentjobtest.RouteReportProgress), "at 0, 3, 6 and 9 s of ten")
		p := m.Progress()
		require.EqualValues(t, 4, p.Seq)
		require.Contains(t, []string{"step 89", "step 90"}, p.Message, "both fall on the ninth second")
		for _, req := range w.srv.Requests() {
			require.NotEqual(t, 429, req.Status)
		}
	})
}

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

func TestFullDiskStopsClaimingAndHeals(t *testing.T) {
	inWorld(t, func(w *world) {
		h := counting(echo)
		r := w.run(h.handle)
		synctest.Wait()
		w.store.FailPuts(syscall.ENOSPC)
		m := w.send("Hello")
		other := w.send("Other")
		w.pass(5 * time.Minute)
		require.Zero(t, h.count(m.ID), "a claim that is not on disk is not run")
		require.Equal(t, agentjobtest.StatusQueued, other.Status())
		require.Contains(t, r.Status().Waiting, "store fails")
		require.False(t, w.agent.Online())
		w.store.FailPuts(nil)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.Equal(t, "You said: Other", w.reply(other))
		require.NoError(t, r.end())
		require.Equal(t, 1, h.count(m.ID))
	})
}

func TestReplyIsNotSentBeforeItIsOnDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		w.store.OnPut(func(rec agentjob.Record) error {
			if rec.State == agentjob.StateSaved {
				return syscall.ENOSPC
			}
			return nil
		})
		r := w.run(echo)
		m := w.send("Hello")
		w.pass(5 * time.Minute)
		require.Zero(t, w.requests(agentjobtest.RouteRespond))
		w.store.OnPut(nil)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
	})
}

func TestEndThatCannotBeWrittenDoesNotHoldUpOtherReplies(t *testing.T) {
	inWorld(t, func(w *world) {
		w.store.OnPut(func(rec agentjob.Record) error {
			if rec.State == agentjob.StateEnded {
				return syscall.ENOSPC
			}
			return nil
		})
		r := w.run(echo)
		m := w.send("Hello")
		require.Equal(t, "You said: Hello", w.reply(m))
		w.pass(time.Minute)
		require.Contains(t, r.Status().Waiting, "store fails")
		w.store.OnPut(nil)
		w.pass(time.Minute)
		require.Equal(t, agentjob.EndDelivered, w.record(m.ID).End)
		require.Equal(t, "You said: next", w.reply(w.send("next")))
		require.NoError(t, r.end())
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

func TestOddTasks(t *testing.T) {
	ids := []string{"a/b", "../../etc/passwd", "nul\x00byte", "per%2Fcent", "q?x=1#y", "ünï", strings.Repeat("x", 400)}
	for _, id := range ids {
		t.Run(fmt.Sprintf("id %.20q", id), func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.run(echo)
				m := w.sendMessage(agentjobtest.MessageOptions{ID: id, Text: "Hello"})
				require.Equal(t, "You said: Hello", w.reply(m))
				require.NoError(t, r.end())
				require.Equal(t, agentjob.EndDelivered, w.record(id).End)
			})
		})
	}
	for name, c := range map[string]struct{ id, task, reply string }{
		"unknown fields":       {"t1", `{"id":"t1","new":{"a":[1]},"messages":[{"role":"user","content":"Hello","mood":3}]}`, "You said: Hello"},
		"wrong-typed chat id":  {"t2", `{"id":"t2","chat_id":7,"amount_usdc":{"x":1},"is_first_chat":"maybe","messages":[{"role":"user","content":"Hello"}]}`, "You said: Hello"},
		"a message without it": {"t3", `{"id":"t3","messages":[{"role":"assistant"},{"role":"user","content":"Hello"}]}`, "You said: Hello"},
		"no messages":          {"t4", `{"id":"t4"}`, ""},
		"empty messages":       {"t5", `{"id":"t5","messages":[]}`, ""},
		"content of odd type":  {"t6", `{"id":"t6","messages":[{"role":"user","content":42}]}`, ""},
		"no id":                {"t7", `{"messages":[{"role":"user","content":"Hello"}]}`, ""},
		"id dot dot":           {"..", `{"id":"..","messages":[{"role":"user","content":"Hello"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				h := counting(echo)
				r := w.run(h.handle)
				m := w.sendMessage(agentjobtest.MessageOptions{ID: c.id, Task: json.RawMessage(c.task), Text: "Hello"})
				if c.reply != "" {
					require.Equal(t, c.reply, w.reply(m))
				} else {
					w.pass(time.Minute)
					require.Zero(t, h.count(c.id), "there is nothing to answer")
					require.NotEmpty(t, append(w.seen(agentjob.EventEnded), w.seen(agentjob.EventPollFail)...), "and it is reported")
				}
				require.Equal(t, "You said: next", w.reply(w.send("next")), "the worker goes on")
				require.NoError(t, r.end())
			})
		})
	}
}

func TestTombstonesAndTextAreForgottenInTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 409, Body: `{"error":"late"}`, Times: 1})
		r := w.run(echo, func(c *agentjob.Config) { c.Retention = 48 * time.Hour })
		refused := w.send("Hello")
		w.pass(time.Minute)
		w.reply(w.send("Other"))
		w.pass(23 * time.Hour)
		require.Len(t, w.store.Records(w.agent.ID), 2)
		w.pass(3 * time.Hour)
		require.Len(t, w.store.Records(w.agent.ID), 1, "a day after its deadline a delivered task is forgotten")
		require.False(t, w.record(refused.ID).Content.IsZero())
		w.pass(24 * time.Hour)
		require.Empty(t, w.store.Records(w.agent.ID))
		require.NoError(t, r.end())
	})
}

func TestTextIsDroppedBeforeTheTombstone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 409, Times: 1})
		r := w.run(echo, func(c *agentjob.Config) { c.Retention = time.Hour })
		m := w.send("Hello")
		w.pass(3 * time.Hour)
		require.True(t, w.record(m.ID).Content.IsZero())
		require.Equal(t, agentjob.EndRejected, w.record(m.ID).End)
		require.NoError(t, r.end())
	})
}

// Stopping in every way at every moment ends Run, leaks nothing, and never costs a saved reply.
func TestStopAtAnyMoment(t *testing.T) {
	for i := range 60 {
		inWorld(t, func(w *world) {
			w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 10 })
			h := counting(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
				select {
				case <-time.After(time.Duration(i%7) * time.Millisecond):
					return echo(ctx, task)
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			})
			w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.Slow, Delay: 2 * time.Millisecond})
			r := w.run(h.handle, func(c *agentjob.Config) { c.Concurrency = 5; c.DrainTimeout = 3 * time.Millisecond })
			var all []*agentjobtest.Message
			for range 5 {
				all = append(all, w.send("Hello"))
			}
			w.pass(time.Duration(i) * 300 * time.Microsecond)
			var ending sync.WaitGroup
			for j := range 6 {
				ending.Go(func() { []func(){r.Drain, r.Stop, r.cancel}[(i+j)%3]() })
			}
			ending.Wait()
			if err := r.wait(); err != nil {
				require.ErrorIs(t, err, agentjob.ErrStopped)
			}
			saved := map[string]bool{}
			for _, rec := range w.store.Records(w.agent.ID) {
				saved[rec.TaskID] = rec.State == agentjob.StateSaved
				require.NotEqual(t, agentjob.StateClaimed, rec.State, "what was cut off is recorded as interrupted")
			}
			r = w.run(h.handle)
			w.pass(time.Minute)
			require.NoError(t, r.end())
			for _, m := range all {
				require.LessOrEqual(t, h.count(m.ID), 1)
				require.LessOrEqual(t, m.Counts().Deliveries, 1)
				if saved[m.ID] {
					require.Equal(t, agentjobtest.StatusCompleted, m.Status())
				}
			}
		})
	}
}

// Nothing that a worker writes shows a key or chat text.
func TestNoSecretOrChatTextInOutput(t *testing.T) {
	inWorld(t, func(w *world) {
		const canary = "CANARY-chat-text-of-a-customer"
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
		for _, route := range []agentjobtest.Route{agentjobtest.RouteRespond, agentjobtest.RoutePoll, agentjobtest.RouteHeartbeat, agentjobtest.RouteProgress} {
			for _, contentType := range []string{"application/json", "text/plain", "text/html"} {
				w.srv.Inject(agentjobtest.Fault{
					Route: route, Status: 500, Times: 2, ContentType: contentType,
					Body: `{"error":"no key ` + w.agent.Key + ` for ` + canary + `"}`,
				})
			}
		}
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			task.Progress(canary, nil)
			switch task.LastUserText() {
			case canary + "error":
				return nil, fmt.Errorf("model said %s with %s", canary, w.agent.Key)
			case canary + "panic":
				panic(canary + w.agent.Key)
			case canary + "unavailable":
				return nil, agentjob.Unavailable(errors.New(canary), time.Second)
			}
			return agentjob.Text(canary), nil
		}, func(c *agentjob.Config) { c.Concurrency = 2 })
		for _, kind := range []string{"error", "panic", "unavailable", "", "", ""} {
			w.send(canary + kind)
		}
		w.pass(20 * time.Minute)
		require.NoError(t, r.end())
		var own strings.Builder
		for _, e := range w.seen(agentjob.EventDeliveryRetry) {
			own.WriteString(e.Err.Error())
		}
		for _, rec := range w.store.Records(w.agent.ID) {
			own.WriteString(rec.Reason)
		}
		require.Contains(t, w.log.String(), "delivery_retry", "the log is on")
		for _, out := range []string{w.log.String(), own.String()} {
			require.NotContains(t, out, canary)
			require.NotContains(t, out, w.agent.Key)
		}
	})
}

func TestRecordsBelongToTheirAgent(t *testing.T) {
	inWorld(t, func(w *world) {
		outage := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
		r := w.run(echo, func(c *agentjob.Config) { c.DrainTimeout = time.Second })
		m := w.send("Hello")
		w.pass(time.Minute)
		require.ErrorIs(t, r.end(), agentjob.ErrStopped)
		outage.Clear()

		other := w.srv.AddAgent("Other agent")
		r = w.run(echo, func(c *agentjob.Config) { c.Client = w.newClient(other.Key) })
		w.pass(time.Minute)
		require.Equal(t, other.ID, r.Status().AgentID)
		require.NoError(t, r.end())
		require.Equal(t, agentjobtest.StatusProcessing, m.Status(), "another agent's key delivers nothing of this one")

		r = w.run(echo)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
	})
}

func TestForbiddenTaskDoesNotStopTheWorker(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Status: 403, Body: `{"error":"not yours"}`, Times: 1})
		r := w.run(echo)
		require.Equal(t, "You said: Hello", w.reply(w.send("Hello")))
		require.NoError(t, r.end())
		require.Len(t, w.seen(agentjob.EventWatchFail), 1)
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

func TestRunWithAContextThatHasEndedClaimsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		worker, err := agentjob.NewWorker(agentjob.Config{Client: w.client, Store: w.store, Handler: agentjob.HandlerFunc(echo)})
		require.NoError(t, err)
		w.send("Hello")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, worker.Run(ctx))
		require.Zero(t, w.requests(agentjobtest.RoutePoll))
		require.Equal(t, agentjob.PhaseStopped, worker.Status().Phase)
	})
}
