package agentjob_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestReplyIsDelivered(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			require.Len(t, task.SessionID, 64)
			deadline, ok := ctx.Deadline()
			require.True(t, ok, "the context has the platform's deadline")
			require.WithinDuration(t, time.Now().Add(30*time.Minute), deadline, 2*time.Second)
			return echo(ctx, task)
		})
		m := w.send("Hello")
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
		require.Equal(t, []agentjob.End{agentjob.EndDelivered}, w.ends())

		rec := w.record(m.ID)
		require.Equal(t, agentjob.StateEnded, rec.State)
		require.True(t, rec.Content.IsZero(), "the text of a delivered reply is dropped")
		require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Charges: 1}, m.Counts())
	})
}

func TestFollowUpsCarryTheConversationOfOneCustomerOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(_ context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			var all []string
			for _, m := range task.Messages {
				all = append(all, m.Role+":"+m.Content)
			}
			return agentjob.Text(strings.Join(all, "|")), nil
		}, func(c *agentjob.Config) { c.Concurrency = 2 })
		synctest.Wait() // online
		alice, bob := w.srv.User("alice").Chat(w.agent), w.srv.User("bob").Chat(w.agent)
		a1, err := alice.Send("hi")
		require.NoError(t, err)
		b1, err := bob.Send("hi")
		require.NoError(t, err)
		require.Equal(t, "user:hi", w.reply(a1))
		require.Equal(t, "user:hi", w.reply(b1))
		a2, err := alice.Send("again")
		require.NoError(t, err)
		require.Equal(t, "user:hi|assistant:user:hi|user:again", w.reply(a2))
		require.NoError(t, r.end())
	})
}

func TestTaskHandedOutTwiceRunsOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		release := make(chan struct{})
		h := counting(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			<-release
			return echo(ctx, task)
		})
		two := func(c *agentjob.Config) { c.Concurrency = 2 }
		r := w.run(h.handle, two)
		m := w.send("Hello")
		w.claimed(m)
		w.srv.HandOutAgain(m.ID) // while it runs
		w.pass(time.Minute)
		require.Len(t, w.seen(agentjob.EventDuplicate), 1)
		close(release)
		w.reply(m)
		w.srv.HandOutAgain(m.ID) // after it ended
		w.pass(time.Minute)
		require.NoError(t, r.end())

		r = w.run(h.handle, two) // and after a restart
		w.srv.HandOutAgain(m.ID)
		w.pass(time.Minute)
		require.NoError(t, r.end())
		require.Len(t, w.seen(agentjob.EventDuplicate), 3)
		require.Equal(t, 1, h.count(m.ID))
		require.Equal(t, 1, m.Counts().Deliveries)
	})
}

// A platform's fault on the way of a reply never costs the reply, nor a second run or message.
func TestReplySurvivesFaults(t *testing.T) {
	html := "<!DOCTYPE html><title>gateway</title>"
	for name, fault := range map[string]agentjobtest.Fault{
		"503 without JSON":          {Status: 503, Body: "upstream connect error", ContentType: "text/plain"},
		"503 empty":                 {Status: 503},
		"500 JSON":                  {Status: 500, Body: `{"error":"boom"}`},
		"a proxy's HTML 200":        {Status: 200, Body: html, ContentType: "text/html"},
		"HTML 404":                  {Status: 404, Body: html, ContentType: "text/html; charset=utf-8"},
		"HTML 403":                  {Status: 403, Body: html, ContentType: "text/html"},
		"200 with cut JSON":         {Status: 200, Body: `{"ok":tr`},
		"200 that says no":          {Status: 200, Body: `{"ok":false,"error":"try later"}`},
		"429, Retry-After one hour": {Status: 429, Body: `{"error":"slow down"}`, RetryAfter: "3600"},
		"cut before":                {Kind: agentjobtest.CutBefore},
		"cut after":                 {Kind: agentjobtest.CutAfter},
		"truncated":                 {Kind: agentjobtest.Truncate},
		"redirect":                  {Kind: agentjobtest.Redirect, Body: "http://other.test/"},
		"wrong task id":             {Kind: agentjobtest.WrongTaskID},
		"slower than the time-out":  {Kind: agentjobtest.Slow, Delay: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				fault.Route, fault.Times = agentjobtest.RouteRespond, 3
				w.srv.Inject(fault)
				h := counting(echo)
				r := w.run(h.handle)
				m := w.send("Hello")
				require.Equal(t, "You said: Hello", w.reply(m))
				w.pass(10 * time.Minute)
				require.NoError(t, r.end())
				require.Equal(t, []agentjob.End{agentjob.EndDelivered}, w.ends())
				require.Len(t, w.seen(agentjob.EventDeliveryRetry), 3)
				require.Equal(t, 1, h.count(m.ID))
				require.Equal(t, 1, m.Counts().Deliveries)
			})
		})
	}
}

func TestEmptyAnswerToAReplyIsAcceptance(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 204})
		r := w.run(echo)
		w.send("Hello")
		require.NoError(t, w.srv.Await(context.Background(), agentjobtest.RouteRespond, 1))
		require.NoError(t, r.end())
		require.Equal(t, []agentjob.End{agentjob.EndDelivered}, w.ends())
	})
}

func TestPermanentRefusalKeepsTheTextForTheOperator(t *testing.T) {
	for _, status := range []int{400, 403, 404, 409, 413, 422} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: status, Body: `{"error":"no"}`})
				r := w.run(echo)
				m := w.send("Hello")
				w.pass(time.Minute)
				require.NoError(t, r.end())
				rec := w.record(m.ID)
				require.Equal(t, agentjob.EndRejected, rec.End)
				require.Equal(t, status, rec.Status)
				require.JSONEq(t, `{"text":"You said: Hello"}`, string(rec.Content.Response))
				require.Equal(t, 1, w.requests(agentjobtest.RouteRespond), "a refusal is not tried again")
			})
		})
	}
}

func TestSavedReplyIsDeliveredAfterARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		outage := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
		h := counting(echo)
		r := w.run(h.handle, func(c *agentjob.Config) { c.DrainTimeout = time.Minute })
		m := w.send("Hello")
		w.pass(5 * time.Minute)
		require.Equal(t, 1, r.Status().Backlog)
		require.ErrorIs(t, r.end(), agentjob.ErrStopped)
		require.Equal(t, agentjob.StateSaved, w.record(m.ID).State)

		outage.Clear()
		r = w.run(h.handle)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
		require.Equal(t, 1, h.count(m.ID), "the handler ran once in both lives")
		require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Charges: 1}, m.Counts())
	})
}

// crash leaves the store as a killed process would.
func (r *running) crash() {
	r.w.Helper()
	r.w.store.Crash()
	r.Stop()
	require.ErrorIs(r.w, r.wait(), agentjob.ErrLeaseLost)
}

func TestTaskCutOffByACrashIsReportedAndNotRunAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		h := counting(untilDone)
		r := w.run(h.handle)
		m := w.send("Hello")
		w.pass(time.Minute)
		require.Equal(t, agentjob.StateClaimed, w.record(m.ID).State)
		r.crash()

		r = w.run(h.handle)
		w.srv.HandOutAgain(m.ID)
		w.pass(time.Minute)
		require.NoError(t, r.end())
		rec := w.record(m.ID)
		require.Equal(t, agentjob.EndInterrupted, rec.End)
		require.Equal(t, 1, h.count(m.ID))
		require.Zero(t, m.Counts().Deliveries)
	})
}

func TestResumeGetsTheTaskThatWasCutOff(t *testing.T) {
	inWorld(t, func(w *world) {
		var resumed []int
		resume := func(c *agentjob.Config) {
			c.Resume = func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
				resumed = append(resumed, task.Resumed)
				if task.Resumed == 1 {
					return untilDone(ctx, task)
				}
				return agentjob.Text("Resumed: " + task.LastUserText()), nil
			}
		}
		r := w.run(untilDone, resume)
		m := w.send("Hello")
		w.pass(time.Minute)
		r.crash()
		r = w.run(untilDone, resume)
		w.pass(time.Minute)
		r.crash()
		r = w.run(untilDone, resume)
		require.Equal(t, "Resumed: Hello", w.reply(m))
		require.NoError(t, r.end())
		require.Equal(t, []int{1, 2}, resumed, "each resumption is counted on disk before it starts")
	})
}

func TestIdleHourThenOutageLosesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(echo)
		w.pass(time.Hour)
		require.InDelta(t, 144, w.requests(agentjobtest.RoutePoll), 2, "25 s polls, no pause between them")
		require.InDelta(t, 80, w.agent.Beats(), 2)
		require.True(t, w.agent.Online())

		outage := []*agentjobtest.Injection{
			w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RoutePoll, Status: 502}),
			w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteHeartbeat, Status: 503, Body: "down", ContentType: "text/plain"}),
		}
		w.pass(30 * time.Minute)
		require.False(t, w.agent.Online())
		require.InDelta(t, 85, outage[0].Count(), 35, "tries go on, backed off")
		for _, o := range outage {
			o.Clear()
		}
		m := w.send("Hello")
		require.Equal(t, "You said: Hello", w.reply(m))
		w.pass(time.Minute)
		require.True(t, w.agent.Online())
		require.NoError(t, r.end())
	})
}

func TestPollsThatComeBackAtOnceArePaced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RoutePoll, Status: 204})
		r := w.run(echo)
		w.pass(time.Minute)
		require.InDelta(t, 60, w.requests(agentjobtest.RoutePoll), 2)
		require.NoError(t, r.end())
	})
}

func TestRevokedKeyEndsRunWithinASecond(t *testing.T) {
	for _, route := range []agentjobtest.Route{agentjobtest.RouteHeartbeat, agentjobtest.RoutePoll, agentjobtest.RouteProgress, agentjobtest.RouteRespond} {
		t.Run(string(route), func(t *testing.T) {
			inWorld(t, func(w *world) {
				skip := 1
				if route == agentjobtest.RouteRespond {
					skip = 0
				}
				w.srv.Inject(agentjobtest.Fault{Route: route, Skip: skip, Status: 401, Body: `{"error":"Invalid or missing API key"}`})
				r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
					if route == agentjobtest.RouteRespond {
						return echo(ctx, task)
					}
					return untilDone(ctx, task)
				})
				if route != agentjobtest.RoutePoll {
					w.send("Hello")
				}
				require.NoError(t, w.srv.Await(context.Background(), route, skip+1))
				refused := time.Now()
				err := r.wait()
				require.ErrorIs(t, err, agentjob.ErrUnauthorized)
				require.Less(t, time.Since(refused), time.Second)
				require.NotContains(t, err.Error(), w.agent.Key)
			})
		})
	}
}

func TestKeyRevokedMidwayKeepsTheSavedReply(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			w.srv.Revoke(w.agent.Key)
			return echo(ctx, task)
		})
		m := w.send("Hello")
		require.ErrorIs(t, r.wait(), agentjob.ErrUnauthorized)
		require.Equal(t, agentjob.StateSaved, w.record(m.ID).State)
	})
}

func TestSecondWorkerIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.run(echo)
		synctest.Wait()
		require.ErrorIs(t, w.run(echo).wait(), agentjob.ErrLeaseHeld)
		require.NoError(t, first.end())
		require.NoError(t, w.run(echo).end(), "and taken once the first is gone")
	})
}

func TestWorkerRunsOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(echo)
		require.NoError(t, r.end())
		require.ErrorIs(t, r.Run(context.Background()), agentjob.ErrWorkerUsed)
	})
}

func TestLostLeaseEndsRunAndWritesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		var cause error
		r := w.run(func(ctx context.Context, _ *agentjob.Task) (*agentjob.Reply, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return agentjob.Text("too late to be ours"), nil
		})
		m := w.send("Hello")
		w.pass(time.Minute)
		w.store.LoseLease(w.agent.ID)
		require.ErrorIs(t, r.wait(), agentjob.ErrLeaseLost)
		require.ErrorIs(t, cause, agentjob.ErrLeaseLost)
		require.Equal(t, agentjob.StateClaimed, w.record(m.ID).State)
		require.Zero(t, w.requests(agentjobtest.RouteRespond))
	})
}

func TestOfflineStartDeliversWhenThePlatformIsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		outage := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
		r := w.run(echo, func(c *agentjob.Config) { c.DrainTimeout = time.Second })
		m := w.send("Hello")
		w.pass(time.Minute)
		require.ErrorIs(t, r.end(), agentjob.ErrStopped)
		me := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Kind: agentjobtest.CutBefore})
		r = w.run(echo)
		w.pass(time.Minute)
		require.Equal(t, agentjob.PhaseServing, r.Status().Phase)
		outage.Clear()
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
		require.Zero(t, me.Count(), "the store knows whose key it is")
	})
}

func TestFirstStartWaitsForThePlatform(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Status: 503, Times: 5})
		m := w.send("Hello")
		r := w.run(echo)
		require.Equal(t, "You said: Hello", w.reply(m))
		require.NoError(t, r.end())
	})
}

func TestDrainWhileWaitingForThePlatformEndsCleanly(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Status: 503})
		r := w.run(echo)
		w.pass(time.Minute)
		require.Equal(t, agentjob.PhaseStarting, r.Status().Phase)
		require.NoError(t, r.end())
	})
}

func TestInvalidConfigurationNamesEveryField(t *testing.T) {
	_, err := agentjob.NewWorker(agentjob.Config{Concurrency: 6, PollWait: time.Hour, ServiceRevision: "a b"})
	for _, field := range []string{"Client", "Handler", "Store", "Concurrency", "PollWait", "ServiceRevision"} {
		require.ErrorContains(t, err, field)
	}
	_, ok := errors.AsType[*agentjob.ValidationError](err)
	require.True(t, ok)
}
