package boltstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/agentjob/agentjob-go/agentjob"
)

// A hoard is a store with records that can be found again in its folder, byte by byte.
type hoard struct {
	*Store
	lease agentjob.Lease
	t     *testing.T
}

func newHoard(t *testing.T) *hoard {
	store, lease := openTest(t)
	return &hoard{store, lease, t}
}

func (h *hoard) put(id string, state agentjob.State, size int) {
	r := rec(id, state, "")
	if size > 0 {
		r.Content.Response = bytes.Repeat([]byte("text "), size/5)
	}
	require.NoError(h.t, h.lease.Put(h.t.Context(), r))
}

// sealed returns the bytes that are kept for the text of a task.
func (h *hoard) sealed(id string) string {
	var data []byte
	require.NoError(h.t, h.home.view(func(tx *bolt.Tx) error {
		data = bytes.Clone(place{providersBucket, "agent-1", ""}.in(tx).Get([]byte(id)))
		return nil
	}))
	_, sealed, ok := bytes.Cut(data, []byte("\n"))
	require.True(h.t, ok)
	return string(sealed[len(sealed)-100:])
}

// found tells which of some texts are in any file of the folder.
func (h *hoard) found(texts ...string) (found []string) {
	folder := filepath.Dir(h.home.path)
	entries, err := os.ReadDir(folder)
	require.NoError(h.t, err)
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		require.NoError(h.t, err)
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) {
				found = append(found, text)
			}
		}
	}
	return found
}

func (h *hoard) size() int64 {
	info, err := os.Stat(h.home.path)
	require.NoError(h.t, err)
	return info.Size()
}

// records returns the tasks that a store has, and their states.
func records(t testing.TB, lease agentjob.Lease) map[string]agentjob.State {
	found := map[string]agentjob.State{}
	for r, err := range lease.Records(t.Context()) {
		require.NoError(t, err)
		found[r.TaskID] = r.State
	}
	return found
}

// fillAndEmpty leaves one record of three in a store, and returns the texts that should be gone.
func (h *hoard) fillAndEmpty() (gone []string, left map[string]agentjob.State) {
	left = map[string]agentjob.State{}
	for i := range 60 {
		h.put(fmt.Sprintf("recognisable-%02d", i), agentjob.StateSaved, 20_000)
	}
	for i := range 60 {
		id := fmt.Sprintf("recognisable-%02d", i)
		switch i % 3 {
		case 0:
			left[id] = agentjob.StateSaved
			continue
		case 1:
			left[id] = agentjob.StateEnded
			gone = append(gone, h.sealed(id))
			h.put(id, agentjob.StateEnded, 0)
		case 2:
			gone = append(gone, h.sealed(id), id)
			require.NoError(h.t, h.lease.Delete(h.t.Context(), id))
		}
	}
	require.Equal(h.t, left, records(h.t, h.lease))
	require.NotEmpty(h.t, h.found(gone...), "bbolt itself wipes nothing, or this test proves nothing")
	return gone, left
}

// copyFolder copies the files as they are now, as a crash would leave them, and returns the store's path there.
func (h *hoard) copyFolder(t *testing.T) string {
	folder := filepath.Join(t.TempDir(), "crashed")
	if !assert.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(h.home.path)))) || !assert.NoError(t, os.Chmod(folder, 0o700)) {
		return ""
	}
	entries, err := os.ReadDir(folder)
	assert.NoError(t, err)
	for _, entry := range entries {
		assert.NoError(t, os.Chmod(filepath.Join(folder, entry.Name()), 0o600))
	}
	return filepath.Join(folder, filepath.Base(h.home.path))
}

// reread opens a store and returns its tasks.
func reread(t *testing.T, path string) map[string]agentjob.State {
	store, err := Open(path, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	return records(t, lease)
}
