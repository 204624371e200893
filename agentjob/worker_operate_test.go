package agentjob_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// outage makes the platform refuse every reply for now.
func (w *world) outage() *agentjobtest.Injection {
	return w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 503})
}

// waiting starts a worker and has it save the reply to a message that can't be delivered.
func (w *world) waiting(change ...func(*agentjob.Config)) (*running, *counted, *agentjobtest.Message) {
	h := counting(echo)
	r := w.run(h.handle, change...)
	m := w.send("Hello")
	w.pass(10 * time.Minute) // the back-off is at its longest
	require.Equal(w, agentjob.StateSaved, w.record(m.ID).State)
	return r, h, m
}

// records returns what the worker says its records are, by task.
func (w *world) recordsOf(worker *agentjob.Worker) map[string]agentjob.Record {
	out := map[string]agentjob.Record{}
	for rec, err := range worker.Records(context.Background()) {
		require.NoError(w, err)
		out[rec.TaskID] = rec
	}
	return out
}

func TestRedeliverTriesAtOnceAndRunsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		down := w.outage()
		r, h, m := w.waiting()
		require.Equal(w, "You said: Hello", w.recordsOf(r.Worker)[m.ID].ReplyText())
		before := w.requests(agentjobtest.RouteRespond)
		require.NoError(w, r.Redeliver(m.ID))
		synctest.Wait()
		require.Equal(w, before+1, w.requests(agentjobtest.RouteRespond), "not before its time is come, but now")
		down.Clear()
		require.NoError(w, r.Redeliver(m.ID))
		synctest.Wait()
		require.Equal(w, agentjob.EndDelivered, w.record(m.ID).End)
		require.Equal(w, 1, h.count(m.ID))
		require.ErrorIs(w, r.Redeliver(m.ID), agentjob.ErrNotWaiting)
		require.NoError(w, r.end())
	})
}

func TestDiscardGivesAReplyUp(t *testing.T) {
	inWorld(t, func(w *world) {
		down := w.outage()
		r, _, m := w.waiting()
		require.NoError(w, r.Discard(w.Context(), m.ID))
		rec := w.record(m.ID)
		require.Equal(w, agentjob.EndRejected, rec.End)
		require.Equal(w, "discarded by the operator", rec.Reason)
		require.Empty(w, rec.ReplyText())
		require.Zero(w, r.Status().Backlog)
		before := w.requests(agentjobtest.RouteRespond)
		down.Clear()
		w.pass(time.Hour)
		require.Equal(w, before, w.requests(agentjobtest.RouteRespond), "nothing more is sent")
		require.Equal(w, []agentjob.End{agentjob.EndRejected}, w.ends())
		require.NoError(w, r.Discard(w.Context(), m.ID), "again is as good")
		require.NoError(w, r.end())
	})
}

func TestDiscardDropsTheTextOfATaskThatHasEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 409, Body: `{"error":"late"}`, Times: 1})
		r := w.run(echo)
		m := w.send("Hello")
		w.pass(time.Minute)
		require.NotEmpty(w, w.record(m.ID).ReplyText())
		require.NoError(w, r.Discard(w.Context(), m.ID))
		require.Empty(w, w.record(m.ID).ReplyText())
		require.Equal(w, 409, w.record(m.ID).Status, "why it ended stays")
		require.NoError(w, r.end())
	})
}

func TestWhatIsNotWaitingIsNotOperatedOn(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(untilDone)
		m := w.send("Hello")
		w.claimed(m)
		for name, err := range map[string]error{
			"redeliver": r.Redeliver(m.ID),
			"discard":   r.Discard(w.Context(), m.ID),
		} {
			require.ErrorIs(w, err, agentjob.ErrNotWaiting, name)
			require.ErrorContains(w, err, "the handler works on it", name)
		}
		require.ErrorIs(w, r.Redeliver("other"), agentjob.ErrNoRecord)
		require.ErrorIs(w, r.Discard(w.Context(), "other"), agentjob.ErrNoRecord)
		r.Stop()
		require.ErrorIs(w, r.wait(), agentjob.ErrStopped)
		require.ErrorIs(w, r.Redeliver(m.ID), agentjob.ErrWorkerNotRunning)
		require.ErrorIs(w, r.Discard(w.Context(), m.ID), agentjob.ErrWorkerNotRunning)
		for _, err := range r.Records(w.Context()) {
			require.ErrorIs(w, err, agentjob.ErrWorkerNotRunning)
		}
	})
}

func TestAReplyUnderWayIsNotDiscarded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.Slow, Delay: time.Second})
		r := w.run(echo)
		m := w.send("Hello")
		w.claimed(m)
		require.ErrorIs(w, r.Discard(w.Context(), m.ID), agentjob.ErrNotWaiting)
		require.NoError(w, r.Redeliver(m.ID), "it is under way")
		require.Equal(w, "You said: Hello", w.reply(m))
		require.NoError(w, r.end())
	})
}

func TestADiscardThatCantBeWrittenSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.outage()
		r, _, m := w.waiting()
		w.store.OnPut(func(agentjob.Record) error { return syscall.ENOSPC })
		require.NoError(w, r.Discard(w.Context(), m.ID), "the memory store's OnPut leaves BindProvider alone")
		require.Contains(w, r.Status().Waiting, "store fails")
		require.ErrorIs(w, r.Discard(w.Context(), m.ID), agentjob.ErrNotWaiting, "its end is not on disk")
		w.store.OnPut(nil)
		w.pass(time.Minute)
		require.Equal(w, agentjob.EndRejected, w.record(m.ID).End)
		require.NoError(w, r.end())
	})
}

func TestOperatingBetweenTwoRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		down := w.outage()
		r, h, m := w.waiting()
		given := w.send("Give up")
		w.pass(10 * time.Minute)
		r.Stop()
		require.ErrorIs(w, r.wait(), agentjob.ErrStopped)
		lease, err := w.store.Acquire(w.Context(), w.agent.ID)
		require.NoError(w, err)

		_, err = agentjob.Redeliver(w.Context(), w.client, lease, m.ID)
		require.ErrorIs(w, err, agentjob.ErrUnavailable)
		require.Equal(w, agentjob.StateSaved, w.record(m.ID).State)
		down.Clear()
		rec, err := agentjob.Redeliver(w.Context(), w.client, lease, m.ID)
		require.NoError(w, err)
		require.Equal(w, agentjob.EndDelivered, rec.End)
		require.Equal(w, rec, w.record(m.ID))
		require.Equal(w, "You said: Hello", w.reply(m))
		_, err = agentjob.Redeliver(w.Context(), w.client, lease, m.ID)
		require.ErrorIs(w, err, agentjob.ErrNotWaiting)

		rec, err = agentjob.Discard(w.Context(), lease, given.ID)
		require.NoError(w, err)
		require.Equal(w, rec, w.record(given.ID))
		require.Empty(w, rec.ReplyText())
		_, err = agentjob.Discard(w.Context(), lease, "other")
		require.ErrorIs(w, err, agentjob.ErrNoRecord)

		cut := agentjob.Record{Provider: w.agent.ID, TaskID: "cut", State: agentjob.StateClaimed, ClaimedAt: time.Now()}
		require.NoError(w, lease.Put(w.Context(), cut))
		_, err = agentjob.Redeliver(w.Context(), w.client, lease, "cut")
		require.ErrorIs(w, err, agentjob.ErrNotWaiting)
		_, err = agentjob.Discard(w.Context(), lease, "cut")
		require.ErrorIs(w, err, agentjob.ErrNotWaiting)
		require.NoError(w, lease.Close())

		r = w.run(h.handle)
		w.pass(time.Minute)
		require.Equal(w, 1, m.Counts().Deliveries)
		require.Zero(w, given.Counts().Deliveries)
		require.Equal(w, 1, h.count(m.ID))
		require.NoError(w, r.end())
	})
}

func TestARefusedKeyKeepsTheReplyForTheNextOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.outage()
		r, _, m := w.waiting()
		r.Stop()
		require.ErrorIs(w, r.wait(), agentjob.ErrStopped)
		lease, err := w.store.Acquire(w.Context(), w.agent.ID)
		require.NoError(w, err)
		_, err = agentjob.Redeliver(w.Context(), w.newClient("ak_wrong"), lease, m.ID)
		require.Error(w, err)
		require.Equal(w, agentjob.StateSaved, w.record(m.ID).State)
		require.NoError(w, lease.Close())
	})
}

func TestWhatATaskEarnedIsToldAtItsEnd(t *testing.T) {
	tokens := int64(7)
	inWorld(t, func(w *world) {
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			if task.LastUserText() == "fail" {
				return nil, errors.New("no")
			}
			reply, err := echo(ctx, task)
			reply.Usage = &agentjob.Usage{Model: "m", OutputTokens: &tokens}
			return reply, err
		})
		good, bad := w.send("Hello"), w.send("fail")
		w.pass(time.Minute)
		told := map[string]*agentjob.Record{}
		for _, e := range w.seen(agentjob.EventEnded) {
			told[e.TaskID] = e.Record
		}
		cent, err := usdc.Parse("0.01")
		require.NoError(w, err)
		for id, usage := range map[string]*agentjob.Usage{good.ID: {Model: "m", OutputTokens: &tokens}, bad.ID: nil} {
			require.Equal(w, &cent, told[id].Amount)
			require.Equal(w, agentjob.Content{Usage: usage}, told[id].Content)
			require.Equal(w, w.record(id).Content, told[id].Content, "the tombstone has the same")
		}
		require.False(w, told[good.ID].SavedAt.IsZero())
		require.NoError(w, r.end())
	})
}
