package agentjob_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A run that is about to end gives the slot of its stuck handler to nobody: a task claimed then would
// be lost to its deadline.
func TestRunThatCannotGoOnClaimsNothingMore(t *testing.T) {
	for range 20 { // a race of two goroutines
		inWorld(t, func(w *world) {
			r := w.run(func(context.Context, *agentjob.Task) (*agentjob.Reply, error) {
				w.pass(time.Hour)
				return agentjob.Text("too late"), nil
			})
			w.claimed(w.send("stuck"))
			next := w.send("next")
			require.ErrorIs(t, r.wait(), agentjob.ErrHandlerStuck)
			require.Equal(t, agentjobtest.StatusQueued, next.Status(), "it waits for the next worker")
			w.pass(time.Hour)
		})
	}
}

// The platform's dates have no fractions of a second, so the deadline that is learnt from them is up
// to a second late: what the platform calls over in that second has expired, and was not cancelled.
func TestTaskIsExpiredInTheSecondOfItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		w.srv.Configure(func(s *agentjobtest.Settings) { s.Deadline = 2 * time.Minute })
		r := w.run(untilDone)
		w.pass(500 * time.Millisecond)
		m := w.send("Hello")
		w.pass(3 * time.Minute)
		require.NoError(t, r.end())
		require.Equal(t, agentjob.EndExpired, w.record(m.ID).End)
	})
}

// Whatever ended the run first, its error tells of a goroutine that is left behind.
func TestStuckHandlerIsToldBesideTheReasonOfTheEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.run(func(context.Context, *agentjob.Task) (*agentjob.Reply, error) {
			w.pass(time.Hour)
			return agentjob.Text("too late"), nil
		})
		w.claimed(w.send("stuck"))
		w.store.LoseLease(w.agent.ID)
		err := r.wait()
		require.ErrorIs(t, err, agentjob.ErrLeaseLost)
		require.ErrorIs(t, err, agentjob.ErrHandlerStuck)
		w.pass(time.Hour)
	})
}

// A full backlog begins no poll, but gives none up: what the platform hands out in that moment, which
// is when a reply has made room there, would be lost.
func TestFullBacklogLosesNoTask(t *testing.T) {
	for range 10 { // a race of two goroutines
		inWorld(t, func(w *world) {
			r := w.run(echo, func(c *agentjob.Config) { c.Backlog, c.Concurrency = 1, 2 })
			var all []*agentjobtest.Message
			for range 40 {
				all = append(all, w.send("Hello"))
			}
			for _, m := range all {
				require.Equal(t, "You said: Hello", w.reply(m))
			}
			require.NoError(t, r.end())
		})
	}
}
