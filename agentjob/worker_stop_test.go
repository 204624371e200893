package agentjob_test

import (
	"context"
	"sync"
	"testing"
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
		w.claimed(m)
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
