package agentjob_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

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

// A worker that was down for days, or whose clock was set forward, ends old tasks now: the day starts then.
func TestAnEndIsRememberedForADayHoweverOldTheTask(t *testing.T) {
	inWorld(t, func(w *world) {
		lease, err := w.store.Acquire(t.Context(), w.agent.ID)
		require.NoError(t, err)
		m := w.sendMessage(agentjobtest.MessageOptions{Text: "Hello", Queue: true})
		then := time.Now().Add(-72 * time.Hour)
		require.NoError(t, lease.Put(t.Context(), agentjob.Record{
			Provider: w.agent.ID, TaskID: m.ID, State: agentjob.StateClaimed, ClaimedAt: then, Deadline: then.Add(time.Hour),
		}))
		require.NoError(t, lease.Close())
		h := counting(echo)
		r := w.run(h.handle)
		w.pass(23 * time.Hour)
		require.Equal(t, agentjob.EndInterrupted, w.record(m.ID).End)
		require.Zero(t, h.count(m.ID))
		w.pass(2 * time.Hour)
		require.NoError(t, r.end())
		require.Empty(t, w.store.Records(w.agent.ID))
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

// A store may take an ended record without having written it, so that one proves nothing.
func TestEndedRecordIsNoProofThatTheStoreWorks(t *testing.T) {
	inWorld(t, func(w *world) {
		release := make(chan struct{})
		r := w.run(func(context.Context, *agentjob.Task) (*agentjob.Reply, error) {
			<-release
			return nil, errHandler
		}, func(c *agentjob.Config) { c.Concurrency = 2 })
		w.claimed(w.send("runs")) // its end will be taken
		w.store.OnPut(func(rec agentjob.Record) error {
			if rec.State == agentjob.StateEnded {
				return nil
			}
			return syscall.ENOSPC
		})
		w.claimed(w.send("can't be recorded"))
		require.Contains(t, r.Status().Waiting, "store fails")
		close(release)
		synctest.Wait()
		require.Equal(t, []agentjob.End{agentjob.EndFailed}, w.ends())
		require.Contains(t, r.Status().Waiting, "store fails", "nothing is claimed on the word of a lazy write")
		w.store.OnPut(nil)
		w.pass(2 * time.Minute)
		require.True(t, r.Status().Open)
		require.NoError(t, r.end())
	})
}

// atPut makes puts in a state fail as long as full says so.
func (w *world) atPut(state agentjob.State, full *atomic.Bool) {
	w.store.OnPut(func(rec agentjob.Record) error {
		if rec.State == state && full.Load() {
			return syscall.ENOSPC
		}
		return nil
	})
}

func TestSpaceThatReturnsIsNoticedSoon(t *testing.T) {
	for _, state := range []agentjob.State{agentjob.StateClaimed, agentjob.StateSaved, agentjob.StateEnded} {
		t.Run(string(state), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var full atomic.Bool
				full.Store(true)
				w.atPut(state, &full)
				r := w.run(echo)
				m := w.send("Hello")
				w.pass(20 * time.Minute) // long enough for every back-off to be at its cap
				require.Contains(t, r.Status().Waiting, "store fails")
				require.False(t, w.agent.Online())
				full.Store(false)
				w.pass(3 * time.Second)
				require.True(t, r.Status().Open)
				require.Equal(t, agentjobtest.StatusCompleted, m.Status())
				require.Equal(t, agentjob.EndDelivered, w.record(m.ID).End)
				require.Len(t, w.seen(agentjob.EventStoreFail), 1)
				require.Len(t, w.seen(agentjob.EventStoreOK), 1)
				require.NoError(t, r.end())
			})
		})
	}
}

func TestStartOnAFullDiskClaimsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(echo)
		w.reply(w.send("before"))
		require.NoError(t, r.end())
		w.store.FailPuts(syscall.ENOSPC)
		polls, beats := w.requests(agentjobtest.RoutePoll), w.agent.Beats()
		r = w.run(echo)
		m := w.send("Hello")
		w.pass(10 * time.Minute)
		require.Equal(t, polls, w.requests(agentjobtest.RoutePoll))
		require.Equal(t, beats, w.agent.Beats())
		require.ErrorIs(t, r.Status().Waiting["store fails"], syscall.ENOSPC)
		w.store.FailPuts(nil)
		w.pass(3 * time.Second)
		require.Equal(t, agentjobtest.StatusCompleted, m.Status())
		require.NoError(t, r.end())
	})
}

// A disk may have room for the small records of other tasks, and for the probe.
func TestReplyThatDoesNotFitKeepsTheGateShut(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 10 })
		var full atomic.Bool
		full.Store(true)
		w.atPut(agentjob.StateSaved, &full)
		release := make(chan struct{})
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			if task.LastUserText() == "slow" {
				<-release
			}
			return echo(ctx, task)
		}, func(c *agentjob.Config) { c.Concurrency = 3 })
		slow := w.send("slow")
		w.claimed(slow)
		w.send("quick")
		w.pass(time.Minute)
		late := w.send("late")
		w.pass(5 * time.Minute)
		require.Equal(t, agentjobtest.StatusQueued, late.Status(), "there is a slot for it, but a reply waits to be saved")
		close(release)
		w.pass(5 * time.Minute)
		require.Zero(t, w.requests(agentjobtest.RouteRespond))
		full.Store(false)
		w.pass(3 * time.Second)
		require.Equal(t, agentjobtest.StatusCompleted, late.Status())
		require.NoError(t, r.end())
	})
}

// Another task's good write doesn't make the worker forget what it owes.
func TestEndThatIsOwedIsWrittenBeforeClaiming(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 10 })
		var full atomic.Bool
		w.atPut(agentjob.StateEnded, &full)
		release := make(chan struct{})
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			if task.LastUserText() == "slow" {
				<-release
			}
			return echo(ctx, task)
		}, func(c *agentjob.Config) { c.Concurrency = 2 })
		w.claimed(w.send("slow"))
		full.Store(true)
		w.reply(w.send("quick"))
		w.pass(time.Minute)
		close(release) // this one's saved record is written well
		w.pass(time.Minute)
		require.Contains(t, r.Status().Waiting, "store fails")
		full.Store(false)
		w.pass(3 * time.Second)
		require.True(t, r.Status().Open)
		for _, rec := range w.store.Records(w.agent.ID) {
			require.Equal(t, agentjob.EndDelivered, rec.End)
		}
		require.NoError(t, r.end())
	})
}

// farAway takes a while to bring the answers to polls.
type farAway struct{ *http.Transport }

func (f farAway) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.Transport.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/agents/tasks") {
		return answer, err
	}
	select {
	case <-time.After(100 * time.Millisecond):
		return answer, nil
	case <-r.Context().Done():
		return nil, errors.Join(r.Context().Err(), answer.Body.Close())
	}
}

// The next message has been handed out, and is under way, when the disk turns out to be full.
func TestTaskHandedOutWhenTheDiskTurnsOutFullIsNotLost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 10 })
		h := counting(echo)
		first, second := w.send("first"), w.send("second")
		full := true
		w.store.OnPut(func(rec agentjob.Record) error {
			if rec.TaskID == first.ID && full {
				full = false
				require.NoError(t, second.WaitClaim(context.Background()))
				return syscall.ENOSPC
			}
			return nil
		})
		near := w.srv.Client()
		near.Transport = farAway{near.Transport.(*http.Transport)}
		r := w.run(h.handle, func(c *agentjob.Config) { c.Concurrency, c.Client = 2, w.newClient(w.agent.Key) })
		w.pass(time.Minute)
		for _, m := range []*agentjobtest.Message{first, second} {
			require.Equal(t, agentjobtest.StatusCompleted, m.Status())
			require.Equal(t, 1, h.count(m.ID))
		}
		require.NoError(t, r.end())
	})
}
