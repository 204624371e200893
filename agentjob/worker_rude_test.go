package agentjob_test

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// What a caller's functions do wrong stays theirs: a task may fail, the process and the
// worker's bookkeeping do not.

func TestHandlersErrorIsNotTakenForTheWorkers(t *testing.T) {
	for _, err := range []error{
		agentjob.ErrHandlerStuck, agentjob.ErrReplyTooLong, agentjob.ErrTaskCancelled, agentjob.ErrLeaseLost,
		agentjob.ErrStopped, agentjob.ErrUnauthorized, (*fs.PathError)(nil), &agentjob.UnavailableError{},
	} {
		inWorld(t, func(w *world) {
			r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
				if task.LastUserText() == "fail" {
					return nil, err
				}
				return echo(ctx, task)
			})
			bad := w.send("fail")
			w.pass(time.Minute)
			require.Equal(t, "You said: next", w.reply(w.send("next")), "%T", err)
			require.NoError(t, r.end())
			require.Equal(t, agentjob.EndFailed, w.record(bad.ID).End)
		})
	}
}

func TestReadyAndAcquireThatFailOddlyAreAskedAgain(t *testing.T) {
	for name, odd := range map[string]func() error{
		"panic":     func() error { panic("odd") },
		"typed nil": func() error { return (*fs.PathError)(nil) },
		"stuck":     func() error { return agentjob.ErrHandlerStuck },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				start := time.Now()
				r := w.run(echo, func(c *agentjob.Config) {
					c.Ready = func(context.Context) error {
						if time.Since(start) < time.Minute {
							return odd()
						}
						return nil
					}
					c.Acquire = func(context.Context) (func(), error) {
						if time.Since(start) < 3*time.Minute {
							return nil, odd()
						}
						return nil, nil
					}
				})
				require.Equal(t, "You said: Hello", w.reply(w.send("Hello")))
				require.NoError(t, r.end())
			})
		})
	}
}

func TestPanicsOfReleaseAndObserveAreCaught(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(echo, func(c *agentjob.Config) {
			c.Acquire = func(context.Context) (func(), error) { return func() { panic("release") }, nil }
			c.Observe = func(e agentjob.Event) {
				w.observe(e)
				panic("observe")
			}
		})
		require.Equal(t, "You said: Hello", w.reply(w.send("Hello")))
		require.NoError(t, r.end())
		require.NotEmpty(t, w.seen(agentjob.EventPanic))
		require.Contains(t, w.log.String(), "Observe panicked")
	})
}

func TestReleaseThatBlocksEndsRun(t *testing.T) {
	inWorld(t, func(w *world) {
		free := make(chan struct{})
		defer close(free)
		r := w.run(echo, func(c *agentjob.Config) {
			c.Acquire = func(context.Context) (func(), error) { return func() { <-free }, nil }
		})
		m := w.send("Hello")
		require.ErrorIs(t, r.wait(), agentjob.ErrHandlerStuck)
		require.Equal(t, agentjobtest.StatusCompleted, m.Status())
	})
}

func TestHandlerMayChangeItsTask(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			task.Progress("working", nil)
			*task = agentjob.Task{}
			w.pass(20 * time.Second)
			return agentjob.Text("done"), nil
		})
		require.Equal(t, "done", w.reply(w.send("Hello")))
		require.NoError(t, r.end())
	})
}

func TestDrainAndStopBeforeRunClaimNothing(t *testing.T) {
	for _, ask := range []func(*agentjob.Worker){(*agentjob.Worker).Drain, (*agentjob.Worker).Stop} {
		inWorld(t, func(w *world) {
			w.send("Hello")
			worker, err := agentjob.NewWorker(agentjob.Config{Client: w.client, Store: w.store, Handler: agentjob.HandlerFunc(echo)})
			require.NoError(t, err)
			ask(worker)
			require.NoError(t, worker.Run(context.Background()))
			require.Empty(t, w.srv.Requests())
		})
	}
}

// A refusal needs the API's own words: a proxy's plain text never costs a saved reply.
func TestProxysWordsAreNoRefusal(t *testing.T) {
	for status, body := range map[int]string{403: "RBAC: access denied", 404: "default backend - 404", 405: "", 400: "Bad Request"} {
		inWorld(t, func(w *world) {
			w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Times: 3, Status: status, Body: body, ContentType: "text/plain"})
			w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RoutePoll, Times: 2, Status: status, Body: body, ContentType: "text/plain"})
			r := w.run(echo)
			require.Equal(t, "You said: Hello", w.reply(w.send("Hello")))
			require.NoError(t, r.end())
		})
	}
}

func TestEventsCarryTheStatusOfTheAnswer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Status: 404, Times: 1, Body: "<html>", ContentType: "text/html"})
		r := w.run(echo)
		w.pass(time.Minute)
		w.srv.Revoke(w.agent.Key)
		require.ErrorIs(t, r.wait(), agentjob.ErrUnauthorized)
		require.Equal(t, 404, w.seen(agentjob.EventPollFail)[0].Status)
		require.Equal(t, 401, w.seen(agentjob.EventStopped)[0].Status)
	})
}
