package filestore_test

import (
	"bufio"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
)

func TestSecondProcessIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "store")
	cmd, out := startChild(t, path)
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the child did not open the store")

	drained := make(chan struct{})
	go func() { // so that the child isn't held up
		defer close(drained)
		for lines.Scan() {
		}
	}()
	store, err := filestore.Open(path, filestore.Options{})
	require.ErrorIs(t, err, agentjob.ErrLeaseHeld)
	require.ErrorContains(t, err, path)
	require.Nil(t, store)

	require.NoError(t, cmd.Process.Kill())
	<-drained
	require.Error(t, cmd.Wait(), "it was killed")
	reopened(t, path) // the lock died with its process
}

func reopened(t testing.TB, path string) *filestore.Store {
	t.Helper()
	store, err := filestore.Open(path, filestore.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return store
}

// This shows that nothing acknowledged waits in the process's memory. It doesn't show
// that it was synced: the system keeps written pages when a process dies.
func TestAcknowledgedPutsSurviveKills(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "store")
	acknowledged := map[string]bool{}
	for range 10 {
		cmd, out := startChild(t, path)
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan(), "the child did not open the store")
		for n := 0; lines.Scan(); n++ {
			acknowledged[lines.Text()] = true
			if n == 50 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")

		store, err := filestore.Open(path, filestore.Options{})
		require.NoError(t, err)
		lease, err := store.Acquire(t.Context(), "agent-1")
		require.NoError(t, err)
		found := map[string]agentjob.Record{}
		for rec, err := range lease.Records(t.Context()) {
			require.NoError(t, err)
			found[rec.TaskID] = rec
		}
		require.NoError(t, store.Close())
		for id := range acknowledged {
			require.Equal(t, childRecord(id), found[id], "task %s was acknowledged", id)
		}
	}
	require.Greater(t, len(acknowledged), 500)
}
