package agentjobtest_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/agentjob/storetest"
)

func TestStoreConforms(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open:   func(testing.TB) agentjob.Store { return agentjobtest.NewStore() },
		Reopen: func(_ testing.TB, s agentjob.Store) agentjob.Store { s.(*agentjobtest.Store).Crash(); return s },
		Lose: func(_ testing.TB, s agentjob.Store, provider string) agentjob.Store {
			s.(*agentjobtest.Store).LoseLease(provider)
			return s
		},
		Fill: func(_ testing.TB, s agentjob.Store) func() {
			s.(*agentjobtest.Store).FailPuts(syscall.ENOSPC)
			return func() { s.(*agentjobtest.Store).FailPuts(nil) }
		},
	})
}

func record(taskID string) agentjob.Record {
	return agentjob.Record{Provider: "agent-1", TaskID: taskID, State: agentjob.StateClaimed}
}

func TestCrashFreesLeasesAndFencesTheirHolders(t *testing.T) {
	store := agentjobtest.NewStore()
	before, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.NoError(t, before.Put(t.Context(), record("a")))

	store.Crash()
	after, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.ErrorIs(t, before.Put(t.Context(), record("b")), agentjob.ErrLeaseLost)
	require.ErrorIs(t, before.Delete(t.Context(), "a"), agentjob.ErrLeaseLost)
	require.NoError(t, before.Close())
	require.NoError(t, after.Put(t.Context(), record("c")), "closing the dead lease must not close the new one")
	assert.Equal(t, []agentjob.Record{record("a"), record("c")}, store.Records("agent-1"))
	select {
	case <-before.Lost():
		t.Error("a dead process can't be told that it lost its lease")
	default:
	}
}

func TestLoseLeaseTellsItsHolder(t *testing.T) {
	store := agentjobtest.NewStore()
	store.LoseLease("agent-1") // nobody holds it
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	store.LoseLease("agent-1")
	<-lease.Lost()
	require.ErrorIs(t, lease.Put(t.Context(), record("a")), agentjob.ErrLeaseLost)
	_, err = store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
}

func TestFailPutsAndOnPut(t *testing.T) {
	store := agentjobtest.NewStore()
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.NoError(t, lease.Put(t.Context(), record("a")))

	store.FailPuts(syscall.ENOSPC)
	require.ErrorIs(t, lease.Put(t.Context(), record("b")), syscall.ENOSPC)
	require.NoError(t, lease.Delete(t.Context(), "a"), "deletes work on a full disk")
	store.FailPuts(nil)
	require.NoError(t, lease.Put(t.Context(), record("c")))

	refused := errors.New("only this task")
	store.OnPut(func(rec agentjob.Record) error {
		if rec.TaskID == "d" {
			return refused
		}
		return nil
	})
	require.ErrorIs(t, lease.Put(t.Context(), record("d")), refused)
	require.NoError(t, lease.Put(t.Context(), record("e")))
	assert.Equal(t, []agentjob.Record{record("c"), record("e")}, store.Records("agent-1"))
}
