package boltstore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

func TestStoreThatIsMovedAwayTakesNoWritesUntilItIsBack(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows moves no file that is open")
	}
	for name, part := range map[string]func(path string) string{"the folder": filepath.Dir, "the file": filepath.Clean} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			store := reopened(t, path)
			lease, err := store.Acquire(t.Context(), "agent-1")
			require.NoError(t, err)
			require.NoError(t, lease.Put(t.Context(), childRecord("before")))
			require.NoError(t, os.Rename(part(path), part(path)+"-away"))
			for _, err := range []error{lease.Put(t.Context(), childRecord("task")), store.BindProvider(t.Context(), "print", "agent-1")} {
				require.ErrorIs(t, err, fs.ErrNotExist, "what is written to a file without a name is lost")
				require.ErrorContains(t, err, "put "+path)
			}
			require.NoFileExists(t, path)
			require.NoError(t, os.Rename(part(path)+"-away", part(path)))
			require.NoError(t, lease.Put(t.Context(), childRecord("task")))
			require.NoError(t, store.Close())
			require.Len(t, taskIDs(t, path), 2)
		})
	}
}

func TestStoreThatIsReplacedEndsTheLeaseAndIsNotTouched(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows moves no file that is open")
	}
	path := newPath(t)
	store, err := boltstore.Open(path, boltstore.Options{})
	require.NoError(t, err)
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.NoError(t, lease.Put(t.Context(), childRecord("replaced")))
	require.NoError(t, lease.Put(t.Context(), childRecord("replaced"))) // Close would compact
	require.NoError(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-away"))
	other := reopened(t, path) // another worker gets it
	rival, err := other.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.NoError(t, rival.Put(t.Context(), childRecord("of another")))

	require.ErrorIs(t, lease.Put(t.Context(), childRecord("task")), agentjob.ErrLeaseLost)
	<-lease.Lost()
	require.NoError(t, lease.Close())
	require.ErrorIs(t, store.Close(), agentjob.ErrLeaseLost, "it can't compact")
	require.NoError(t, rival.Put(t.Context(), childRecord("of another, too")))
	require.NoError(t, other.Close())
	require.ElementsMatch(t, []string{"of another", "of another, too"}, taskIDs(t, path))
}

func taskIDs(t *testing.T, path string) (ids []string) {
	lease, err := reopened(t, path).Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	for rec, err := range lease.Records(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, rec.TaskID)
	}
	return ids
}
