package boltstore_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

func TestSecondProcessIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "store.db")
	cmd, out := startChild(t, path)
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the child did not open the store")

	drained := make(chan struct{})
	go func() { // so that the child isn't held up
		defer close(drained)
		for lines.Scan() {
		}
	}()
	store, err := boltstore.Open(path, boltstore.Options{})
	require.ErrorIs(t, err, agentjob.ErrLeaseHeld)
	require.ErrorContains(t, err, path)
	require.Nil(t, store)

	require.NoError(t, cmd.Process.Kill())
	<-drained
	require.Error(t, cmd.Wait(), "it was killed")
	reopened(t, path) // the lock died with its process
}

func reopened(t *testing.T, path string) *boltstore.Store {
	t.Helper()
	store, err := boltstore.Open(path, boltstore.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return store
}

// This shows that nothing acknowledged waits in the process's memory. It doesn't show
// that it was synced: the system keeps written pages when a process dies.
func TestAcknowledgedPutsSurviveKills(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "store.db")
	acknowledged := map[string]bool{}
	halfWay := 0
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
		if _, err := os.Stat(path + ".partial"); err == nil {
			halfWay++
		}

		store, err := boltstore.Open(path, boltstore.Options{})
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
	t.Logf("%d of 10 kills came in the middle of a compaction", halfWay)
}

func TestProcessesThatMeetADamagedFileSetItAsideOnce(t *testing.T) {
	s := newSample(t)
	for range 5 {
		s.place(t, s.data[:len(s.data)/3])
		var outs [4]strings.Builder
		var all sync.WaitGroup
		for i := range outs {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+s.path)
			cmd.Stderr = &outs[i]
			all.Go(func() { assert.Error(t, cmd.Run()) })
		}
		all.Wait()
		setAside := s.setAside(t)
		require.Len(t, setAside, 1)
		require.NoFileExists(t, s.path)
		for i := range outs {
			require.Contains(t, outs[i].String(), setAside[0])
		}
	}
}
