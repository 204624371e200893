package agentjob_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

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
				require.Contains(t, w.log.String(), `level=WARN msg="agentjob: ended"`)
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

func TestVeryLongReplyIsNotKept(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(context.Context, *agentjob.Task) (*agentjob.Reply, error) {
			return agentjob.Text(strings.Repeat("x", 2<<20)), nil
		})
		m := w.send("Hello")
		w.pass(time.Minute)
		require.NoError(t, r.end())
		rec := w.record(m.ID)
		require.Equal(t, agentjob.EndRejected, rec.End)
		require.Contains(t, rec.Reason, "not kept")
		require.True(t, rec.Content.IsZero())
		require.ErrorIs(t, w.seen(agentjob.EventEnded)[0].Err, agentjob.ErrReplyTooLong)
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
		w.claimed(m)
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

func TestForbiddenTaskDoesNotStopTheWorker(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Status: 403, Body: `{"error":"not yours"}`, Times: 1})
		r := w.run(echo)
		require.Equal(t, "You said: Hello", w.reply(w.send("Hello")))
		require.NoError(t, r.end())
		require.Len(t, w.seen(agentjob.EventWatchFail), 1)
	})
}
