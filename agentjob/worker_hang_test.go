package agentjob_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A hangingStore honours contexts and does nothing else once it hangs.
type hangingStore struct {
	agentjob.Store
	puts, deletes bool
}

type hangingLease struct {
	agentjob.Lease
	store *hangingStore
}

func (s *hangingStore) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	return hangingLease{lease, s}, err
}

func (l hangingLease) Put(ctx context.Context, rec agentjob.Record) error {
	if l.store.puts {
		<-ctx.Done()
		return ctx.Err()
	}
	return l.Lease.Put(ctx, rec)
}

func (l hangingLease) Delete(ctx context.Context, taskID string) error {
	if l.store.deletes {
		<-ctx.Done()
		return ctx.Err()
	}
	return l.Lease.Delete(ctx, taskID)
}

func TestStoreThatHangsDoesNotHoldUpAStop(t *testing.T) {
	for name, hang := range map[string]func(*hangingStore){
		"Put while recovering":       func(s *hangingStore) { s.puts = true },
		"Delete of an old tombstone": func(s *hangingStore) { s.deletes = true },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.run(echo)
				w.reply(w.send("Hello"))
				require.NoError(t, r.end())
				r = w.run(untilDone)
				w.send("cut off")
				w.pass(time.Minute)
				r.crash()
				w.pass(48 * time.Hour)

				store := &hangingStore{Store: w.store}
				hang(store)
				r = w.run(echo, func(c *agentjob.Config) { c.Store = store })
				w.pass(time.Minute)
				asked := time.Now()
				r.Stop()
				_ = r.wait() // that it comes is what counts
				require.LessOrEqual(t, time.Since(asked), 30*time.Second)
			})
		})
	}
}

func TestReplyDoesNotWaitForAnothersBackOff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 10 })
		// The first reply is told to wait a minute; the second fails a little later, for a moment.
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Times: 1, Status: 503, RetryAfter: "60"})
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Times: 1, Status: 503, Delay: time.Second})
		r := w.run(echo, func(c *agentjob.Config) { c.Concurrency = 2 })
		start := time.Now()
		first, second := w.send("one"), w.send("two")
		for first.Status() != agentjobtest.StatusCompleted && second.Status() != agentjobtest.StatusCompleted {
			w.pass(100 * time.Millisecond)
		}
		require.Less(t, time.Since(start), 10*time.Second)
		w.reply(first)
		w.reply(second)
		require.NoError(t, r.end())
	})
}

func TestBlipDoesNotCountAsManyFailuresInARow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
		outage := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
		r := w.run(echo, func(c *agentjob.Config) { c.DrainTimeout = time.Second })
		var all []*agentjobtest.Message
		for i := range 20 {
			all = append(all, w.send(fmt.Sprint(i)))
		}
		w.pass(time.Minute)
		require.ErrorIs(t, r.end(), agentjob.ErrStopped)
		outage.Clear()
		// The delay keeps the eight together: without it one may fail before the next is sent.
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Times: 8, Status: 503, Delay: 100 * time.Millisecond})
		r = w.run(echo)
		start := time.Now()
		for _, m := range all {
			w.reply(m)
		}
		require.Less(t, time.Since(start), 10*time.Second)
		require.NoError(t, r.end())
	})
}

func TestProgressOfAResumptionIsSeen(t *testing.T) {
	inWorld(t, func(w *world) {
		first := func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			for range 3 {
				task.Progress("first run", nil)
				w.pass(4 * time.Second)
			}
			return untilDone(ctx, task)
		}
		resume := func(c *agentjob.Config) {
			c.Resume = func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
				task.Progress("resumed", nil)
				w.pass(time.Second)
				return echo(ctx, task)
			}
		}
		r := w.run(first, resume)
		m := w.send("Hello")
		w.pass(time.Minute)
		require.Equal(t, "first run", m.Progress().Message)
		r.crash()
		r = w.run(first, resume)
		w.reply(m)
		require.Equal(t, "resumed", m.Progress().Message)
		require.NoError(t, r.end())
	})
}

func TestBlankTasksWithoutEndAreNoHotLoop(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100_000 })
		r := w.run(echo)
		for i := range 500 {
			id := fmt.Sprint("blank-", i)
			w.sendMessage(agentjobtest.MessageOptions{ID: id, Task: json.RawMessage(`{"id":"` + id + `","messages":[]}`), Text: "x"})
		}
		w.pass(time.Minute)
		require.Less(t, w.requests(agentjobtest.RoutePoll), 20)
		require.NoError(t, r.end())
	})
}

func TestConfigurationIsCopied(t *testing.T) {
	inWorld(t, func(w *world) {
		types := []string{"image/png"}
		info := &agentjob.RuntimeInfo{Framework: "own", Model: "Unknown"}
		r := w.run(echo, func(c *agentjob.Config) { c.AttachmentTypes, c.RuntimeInfo = types, info })
		types[0], info.Model = "changed later", "changed later"
		w.pass(time.Minute)
		require.True(t, w.agent.Online())
		require.NotContains(t, string(w.agent.RuntimeInfo()), "changed")
		require.NoError(t, r.end())
	})
}

// Text of a conversation that the platform quotes is in no error and no record's envelope.
func TestQuotesOfThePlatformStayOut(t *testing.T) {
	inWorld(t, func(w *world) {
		const canary = "CANARY"
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 422, Body: `{"error":"Text 'CANARY rep' contains a bad word: CANARY"}`})
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Status: 200, Body: `{"id":"another","messages":[{"content":"CANARY of somebody else"}]}`})
		r := w.run(func(context.Context, *agentjob.Task) (*agentjob.Reply, error) {
			return agentjob.Text("CANARY reply"), nil
		})
		m := w.send("Hello")
		w.pass(time.Minute)
		require.NoError(t, r.end())
		require.Equal(t, agentjob.EndRejected, w.record(m.ID).End)
		require.NotContains(t, w.record(m.ID).Reason, canary)
		require.NotContains(t, w.log.String(), canary)
		for _, e := range w.seen(agentjob.EventWatchFail) {
			require.NotContains(t, e.Err.Error(), canary)
		}
		require.NotEmpty(t, w.seen(agentjob.EventWatchFail))
	})
}
