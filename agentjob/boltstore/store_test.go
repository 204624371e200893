package boltstore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/agentjob/storetest"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

func TestStoreConforms(t *testing.T) {
	paths := map[agentjob.Store]string{}
	open := func(t testing.TB, path string) agentjob.Store {
		store, err := boltstore.Open(path, boltstore.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		paths[store] = path
		return store
	}
	reopen := func(t testing.TB, store agentjob.Store) agentjob.Store {
		require.NoError(t, store.(*boltstore.Store).Close())
		return open(t, paths[store])
	}
	storetest.Run(t, storetest.Harness{
		Open:   func(t testing.TB) agentjob.Store { return open(t, newPath(t)) },
		Reopen: reopen,
		Lose:   func(t testing.TB, store agentjob.Store, _ string) agentjob.Store { return reopen(t, store) },
	})
}

// newPath returns a path in a folder that doesn't exist yet.
func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "private", "store.db") }

func TestFilesArePrivate(t *testing.T) {
	path := newPath(t)
	reopened(t, path)
	for _, name := range []string{filepath.Dir(path), path, path + ".key"} {
		assert.NoError(t, privatefile.Check(name))
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 3, "only the store, its key and its lock, no temporary files")
}

func TestSharedFolderOrFileIsRefusedWithTheFix(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o750))
	_, err := boltstore.Open(path, boltstore.Options{})
	require.ErrorIs(t, err, privatefile.ErrNotPrivate)
	require.ErrorContains(t, err, "chmod 700 "+filepath.Dir(path))
	require.NoFileExists(t, path)

	require.NoError(t, os.Chmod(filepath.Dir(path), 0o700))
	require.NoError(t, reopened(t, path).Close())
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = boltstore.Open(path, boltstore.Options{})
	require.ErrorIs(t, err, privatefile.ErrNotPrivate)
	require.ErrorContains(t, err, "chmod 600 "+path)
}

func TestUnusableFolderIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := boltstore.Open(filepath.Join(file, "folder", "store.db"), boltstore.Options{})
	require.ErrorContains(t, err, "choose a place where this user may write")
}

func TestChatTextIsNotReadableInTheFile(t *testing.T) {
	path := newPath(t)
	store := reopened(t, path)
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	const canary = "CANARY-text-of-the-chat"
	require.NoError(t, lease.Put(t.Context(), agentjob.Record{
		Provider: "agent-1", TaskID: "visible-id", State: agentjob.StateSaved,
		Content: agentjob.Content{Task: []byte(canary), Response: []byte(canary)},
	}))
	require.NoError(t, store.Close())
	for _, name := range []string{path, path + ".key"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.NotContains(t, string(data), canary)
		assert.NotContains(t, string(data), "Q0FOQVJZ", "nor in base64")
		if name == path {
			assert.Contains(t, string(data), "visible-id", "the envelope is for the operator to read")
		}
	}
}

func TestWrongKeyIsSaidSo(t *testing.T) {
	path := newPath(t)
	store := reopened(t, path)
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.NoError(t, lease.Put(t.Context(), childRecord("a-task")))
	require.NoError(t, store.Close())

	key := secret.NewKey()
	store, err = boltstore.Open(path, boltstore.Options{Keys: secret.KeyFunc(func(context.Context) ([]secret.Key, error) {
		return []secret.Key{key}, nil
	})})
	require.NoError(t, err)
	defer store.Close()
	lease, err = store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	for _, err := range lease.Records(t.Context()) {
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
		require.ErrorIs(t, err, secret.ErrKeyUnknown)
		return
	}
	t.Fatal("Records yielded nothing, not even an error")
}

func TestKeysThatCantBeHadCloseTheFile(t *testing.T) {
	path := newPath(t)
	_, err := boltstore.Open(path, boltstore.Options{Keys: secret.EnvKeys("BOLTSTORE_TEST_NO_SUCH_KEYS")})
	require.ErrorContains(t, err, "BOLTSTORE_TEST_NO_SUCH_KEYS")
	reopened(t, path)
}

func TestCloseTakesTheLeases(t *testing.T) {
	path := newPath(t)
	store := reopened(t, path)
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	tombstone := agentjob.Record{Provider: "agent-1", TaskID: "late", State: agentjob.StateEnded}
	require.NoError(t, lease.Put(t.Context(), tombstone))
	require.NoError(t, store.Close())
	<-lease.Lost()
	require.ErrorIs(t, lease.Put(t.Context(), childRecord("a")), agentjob.ErrLeaseLost)
	require.NoError(t, lease.Close())
	_, err = store.Acquire(t.Context(), "agent-1")
	require.Error(t, err)
	_, err = store.Provider(t.Context(), "print")
	require.Error(t, err)
	require.Error(t, store.BindProvider(t.Context(), "print", "agent-1"))
	require.NoError(t, store.Close())

	lease, err = reopened(t, path).Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	for rec, err := range lease.Records(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, tombstone, rec)
		return
	}
	t.Fatal("the late write was lost by Close")
}
