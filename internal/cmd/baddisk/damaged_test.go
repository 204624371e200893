package baddisk

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// refused starts a worker some times, which must not get to work.
func (w *world) refused(want ...error) {
	w.Helper()
	queued := w.ask("while the store is refused")
	beats, polls := w.agent.Beats(), w.requests(agentjobtest.RoutePoll)
	for range 3 {
		r, err := w.start()
		if err == nil {
			err = r.wait()
		}
		for _, target := range want {
			require.ErrorIs(w, err, target)
		}
		require.ErrorContains(w, err, w.path, "the operator is told where")
	}
	require.Equal(w, agentjobtest.StatusQueued, queued.Status())
	require.Equal(w, beats, w.agent.Beats())
	require.Equal(w, polls, w.requests(agentjobtest.RoutePoll))
}

// closedWithAReply is a world whose store is closed and holds a saved reply, which can be delivered now.
func closedWithAReply(t *testing.T, k kind) (*world, *agentjobtest.Message) {
	w := newWorld(t, k, filepath.Join(t.TempDir(), "private", "store"))
	r := w.serve()
	m, fault := w.held()
	require.ErrorIs(t, r.end(), agentjob.ErrStopped)
	fault.Clear()
	return w, m
}

func TestDamagedStoreIsRefusedUntilTold(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		for name, damage := range k.damages {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w, m := closedWithAReply(t, k)
				damage.do(t, w.path)
				w.refused(agentjob.ErrStoreDamaged)
				setAside, err := k.goOn(w.path)
				require.NoError(t, err)
				if name != "the format is gone" {
					require.NotEmpty(t, setAside)
				}
				for _, file := range setAside {
					require.FileExists(t, file)
				}
				r := w.serve()
				w.ask("after the decision")
				if damage.replyIsThere {
					w.answered()
				} else {
					w.answered(m)
				}
				require.NoError(t, r.end())
				for _, file := range setAside {
					require.FileExists(t, file)
				}
			})
		}
	})
}

func TestStoreOfANewerVersionIsRefusedAndStays(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		w, _ := closedWithAReply(t, k)
		k.newer(t, w.path)
		before := snapshot(t, w.path)
		w.refused(agentjob.ErrStoreDamaged, agentjob.ErrStoreNewer)
		require.Equal(t, before, snapshot(t, w.path))
	})
}
