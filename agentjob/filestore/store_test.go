package filestore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
	"github.com/agentjob/agentjob-go/agentjob/storetest"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

func TestStoreConforms(t *testing.T) {
	paths := map[agentjob.Store]string{}
	open := func(t testing.TB, path string) agentjob.Store {
		store := reopened(t, path)
		paths[store] = path
		return store
	}
	reopen := func(t testing.TB, store agentjob.Store) agentjob.Store {
		require.NoError(t, store.(*filestore.Store).Close())
		return open(t, paths[store])
	}
	storetest.Run(t, storetest.Harness{
		Open:   func(t testing.TB) agentjob.Store { return open(t, newPath(t)) },
		Reopen: reopen,
		Lose:   func(t testing.TB, store agentjob.Store, _ string) agentjob.Store { return reopen(t, store) },
		Damage: func(t testing.TB, store agentjob.Store) agentjob.Store {
			records, err := filepath.Glob(filepath.Join(paths[store], "providers", "*", "*.record"))
			require.NoError(t, err)
			require.NoError(t, os.Truncate(records[0], 40))
			return store
		},
	})
}

// newPath returns a path in a folder that doesn't exist yet.
func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "private", "store") }

func acquire(t testing.TB, store *filestore.Store, provider string) agentjob.Lease {
	t.Helper()
	lease, err := store.Acquire(t.Context(), provider)
	require.NoError(t, err)
	return lease
}

// leaseOf opens the store and acquires agent-1.
func leaseOf(t testing.TB, path string) agentjob.Lease {
	t.Helper()
	return acquire(t, reopened(t, path), "agent-1")
}

// filled returns the path of a store with these records of agent-1 in it, which is closed.
func filled(t testing.TB, tasks ...string) string {
	t.Helper()
	path := newPath(t)
	store := reopened(t, path)
	lease := acquire(t, store, "agent-1")
	for _, id := range tasks {
		require.NoError(t, lease.Put(t.Context(), childRecord(id)))
	}
	require.NoError(t, store.Close())
	return path
}

// read returns the task ids of a lease's records, and the error that ended them.
func read(t testing.TB, lease agentjob.Lease) (ids []string, err error) {
	t.Helper()
	for rec, err := range lease.Records(t.Context()) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, rec.TaskID)
	}
	return ids, nil
}

// files returns all files below a folder, as relative paths.
func files(t testing.TB, dir string) (found []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	}))
	return found
}

func TestRecordIsWhereAPersonLooksForIt(t *testing.T) {
	path := newPath(t)
	store := reopened(t, path)
	lease := acquire(t, store, "9c1f0a52-6b7e-4d9e-8a55-0e2f8c1d7b34")
	const canary = "CANARY-text-of-the-chat"
	require.NoError(t, lease.Put(t.Context(), agentjob.Record{
		Provider: "9c1f0a52-6b7e-4d9e-8a55-0e2f8c1d7b34", TaskID: "0b0e1a5c-5a5e-4f0e-9d4b-7f1f6b1c2d3e", ChatID: "chat-1", State: agentjob.StateSaved,
		Content: agentjob.Content{Task: []byte(canary), Response: []byte(canary)},
	}))
	require.NoError(t, store.BindProvider(t.Context(), "0f3a", "9c1f0a52-6b7e-4d9e-8a55-0e2f8c1d7b34"))
	record := "providers/9c1f0a52-6b7e-4d9e-8a55-0e2f8c1d7b34/0b0e1a5c-5a5e-4f0e-9d4b-7f1f6b1c2d3e.record"
	binding := "fingerprints/0f3a.provider"
	require.Equal(t, []string{binding, "format", "key", "lock", record}, files(t, path))

	data, err := os.ReadFile(filepath.Join(path, record))
	require.NoError(t, err)
	line, sealed, ok := bytes.Cut(data, []byte("\n"))
	require.True(t, ok)
	var envelope map[string]any
	require.NoError(t, json.Unmarshal(line, &envelope))
	assert.Equal(t, "saved", envelope["state"])
	assert.Equal(t, "0b0e1a5c-5a5e-4f0e-9d4b-7f1f6b1c2d3e", envelope["taskId"])
	assert.NotContains(t, string(data), canary)
	assert.NotContains(t, string(data), "Q0FOQVJZ", "nor in base64")
	assert.NotEmpty(t, sealed)

	data, err = os.ReadFile(filepath.Join(path, binding))
	require.NoError(t, err)
	assert.Equal(t, "fingerprint \"0f3a\"\nprovider \"9c1f0a52-6b7e-4d9e-8a55-0e2f8c1d7b34\"\n", string(data))
}

func TestFilesArePrivate(t *testing.T) {
	path := filled(t, "task")
	for _, file := range files(t, path) {
		assert.NoError(t, privatefile.Check(filepath.Join(path, file)))
		assert.NoError(t, privatefile.Check(filepath.Dir(filepath.Join(path, file))))
	}
}

func TestSharedFolderOrRecordIsRefusedWithTheFix(t *testing.T) {
	path := newPath(t)
	require.NoError(t, privatefile.EnsureDir(path))
	require.NoError(t, os.Chmod(path, 0o750))
	_, err := filestore.Open(path, filestore.Options{})
	require.ErrorIs(t, err, privatefile.ErrNotPrivate)
	require.ErrorContains(t, err, "chmod 700 "+path)
	require.Empty(t, files(t, path))

	path = filled(t, "task")
	record := filepath.Join(path, "providers", "agent-1", "task.record")
	require.NoError(t, os.Chmod(record, 0o640))
	_, err = read(t, leaseOf(t, path))
	require.ErrorIs(t, err, privatefile.ErrNotPrivate)
	require.ErrorContains(t, err, "chmod 600 "+record)
	require.FileExists(t, record)
}

func TestUnusableFolderIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := filestore.Open(filepath.Join(file, "folder"), filestore.Options{})
	require.ErrorContains(t, err, "choose a place where this user may write")
}

func TestLeftoversOfACrashAreRemoved(t *testing.T) {
	path := filled(t, "task")
	for _, dir := range []string{path, filepath.Join(path, "fingerprints"), filepath.Join(path, "providers", "agent-1")} {
		left, err := os.CreateTemp(dir, ".new-*")
		require.NoError(t, err)
		require.NoError(t, left.Close())
	}
	ids, err := read(t, leaseOf(t, path))
	require.NoError(t, err)
	require.Equal(t, []string{"task"}, ids)
	require.Equal(t, []string{"format", "key", "lock", "providers/agent-1/task.record"}, files(t, path))
}

func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	path := filled(t, "task")
	notes := filepath.Join(path, "providers", "agent-1", "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("mine"), 0o644))
	ids, err := read(t, leaseOf(t, path))
	require.NoError(t, err)
	require.Equal(t, []string{"task"}, ids)
	require.FileExists(t, notes)
}

func TestCloseTakesTheLeases(t *testing.T) {
	path := newPath(t)
	store := reopened(t, path)
	lease := acquire(t, store, "agent-1")
	tombstone := agentjob.Record{Provider: "agent-1", TaskID: "late", State: agentjob.StateEnded}
	require.NoError(t, lease.Put(t.Context(), tombstone))
	require.NoError(t, store.Close())
	<-lease.Lost()
	require.ErrorIs(t, lease.Put(t.Context(), childRecord("a")), agentjob.ErrLeaseLost)
	require.NoError(t, lease.Close())
	_, err := store.Acquire(t.Context(), "agent-1")
	require.Error(t, err)
	_, err = store.Provider(t.Context(), "print")
	require.Error(t, err)
	require.Error(t, store.BindProvider(t.Context(), "print", "agent-1"))
	require.NoError(t, store.Close())

	for rec, err := range leaseOf(t, path).Records(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, tombstone, rec)
		return
	}
	t.Fatal("the late write was lost by Close")
}

func TestMissingKeyFileIsNotReplaced(t *testing.T) {
	path := newPath(t)
	store := reopened(t, path)
	lease := acquire(t, store, "agent-1")
	require.NoError(t, lease.Put(t.Context(), agentjob.Record{Provider: "agent-1", TaskID: "open", State: agentjob.StateClaimed}))
	require.NoError(t, store.Close())
	key := filepath.Join(path, "key")
	require.NoError(t, os.Remove(key))
	store = reopened(t, path) // nothing is sealed yet, so a new key loses nothing
	require.NoError(t, acquire(t, store, "agent-1").Put(t.Context(), childRecord("sealed")))
	require.NoError(t, store.Close())

	saved, err := os.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, os.Remove(key))
	for range 2 {
		_, err = filestore.Open(path, filestore.Options{})
		require.ErrorIs(t, err, secret.ErrKeyUnknown)
		require.ErrorContains(t, err, "restore it from a backup")
		require.ErrorContains(t, err, "sealed.record")
		require.NoFileExists(t, key)
	}
	require.NoError(t, os.WriteFile(key, saved, 0o600))
	ids, err := read(t, leaseOf(t, path))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"open", "sealed"}, ids)
}

func TestWrongKeyLeavesTheRecordsAlone(t *testing.T) {
	path := filled(t, "task")
	key := secret.NewKey()
	store, err := filestore.Open(path, filestore.Options{Keys: secret.KeyFunc(func(context.Context) ([]secret.Key, error) {
		return []secret.Key{key}, nil
	})})
	require.NoError(t, err)
	defer store.Close()
	_, err = read(t, acquire(t, store, "agent-1"))
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	require.ErrorIs(t, err, secret.ErrKeyUnknown)
	require.FileExists(t, filepath.Join(path, "providers", "agent-1", "task.record"))
	require.NoDirExists(t, filepath.Join(path, "damaged"))
}

func TestKeysThatCantBeHadGiveTheFolderBack(t *testing.T) {
	path := newPath(t)
	_, err := filestore.Open(path, filestore.Options{Keys: secret.EnvKeys("FILESTORE_TEST_NO_SUCH_KEYS")})
	require.ErrorContains(t, err, "FILESTORE_TEST_NO_SUCH_KEYS")
	reopened(t, path)
}

func TestFolderThatIsMovedAwayMakesWritesFailUntilItIsBack(t *testing.T) {
	path := newPath(t)
	store := reopened(t, path)
	lease := acquire(t, store, "agent-1")
	require.NoError(t, lease.Put(t.Context(), childRecord("before")))
	require.NoError(t, os.Rename(path, path+"-away"))
	for _, err := range []error{
		lease.Put(t.Context(), childRecord("task")), lease.Delete(t.Context(), "before"), store.BindProvider(t.Context(), "print", "agent-1"),
	} {
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "put "+path+" back")
	}
	_, err := read(t, lease)
	require.ErrorIs(t, err, fs.ErrNotExist, "an absent folder is not a folder without records")
	require.NoDirExists(t, path)

	require.NoError(t, os.Rename(path+"-away", path))
	require.NoError(t, lease.Put(t.Context(), childRecord("task")))
	ids, err := read(t, lease)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"before", "task"}, ids)
}

func TestFolderThatIsReplacedEndsTheLease(t *testing.T) {
	path := newPath(t)
	lease := leaseOf(t, path)
	require.NoError(t, os.Rename(path, path+"-away"))
	other := leaseOf(t, path) // another worker would get it
	require.ErrorIs(t, lease.Put(t.Context(), childRecord("task")), agentjob.ErrLeaseLost)
	<-lease.Lost()
	ids, err := read(t, other)
	require.NoError(t, err)
	require.Empty(t, ids)
}
