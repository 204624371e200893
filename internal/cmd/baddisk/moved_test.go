package baddisk

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// served starts a worker whose store is in a folder that can be moved.
func served(t *testing.T, k kind) (*world, *running) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows moves no folder in which a file is open")
	}
	w := newWorld(t, k, filepath.Join(t.TempDir(), "private", "store"))
	r := w.serve()
	w.online()
	return w, r
}

func TestFolderMovedAwayAndBack(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		w, r := served(t, k)
		m, fault := w.held()
		dir := filepath.Dir(w.path)
		require.NoError(t, os.Rename(dir, dir+"-away"))
		fault.Clear()
		w.eventually("the saved reply is delivered", func() bool { return m.Status() == agentjobtest.StatusCompleted })
		w.ask("while it is away")
		w.notServed(r)
		require.NoError(t, os.Rename(dir+"-away", dir))
		w.answered()
		w.finished(r)
	})
}

// In the other folder a second worker may be at work, and after a restart nothing would be known of
// what is claimed now.
func TestFolderReplacedByAnotherEndsTheWorker(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		w, r := served(t, k)
		w.ask("before")
		w.answered()
		dir := filepath.Dir(w.path)
		require.NoError(t, os.Rename(dir, dir+"-away"))
		other, err := k.open(w.path)
		require.NoError(t, err)
		defer other.Close()
		m := w.ask("after")
		require.ErrorIs(t, r.wait(), agentjob.ErrLeaseLost)
		require.Zero(t, m.Counts().Deliveries)
		require.False(t, w.ran(m), "what can't be recorded is not run")
	})
}
