package boltstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
)

// fillUp puts records of one state until the store refuses, and returns their ids.
func (h *hoard) fillUp(state agentjob.State, size int) (ids []string) {
	for {
		r := rec(fmt.Sprint(state, len(ids)), state, "")
		r.Content.Response = bytes.Repeat([]byte("x"), size)
		if err := h.lease.Put(h.t.Context(), r); err != nil {
			require.ErrorIs(h.t, err, agentjob.ErrStoreFull)
			return ids
		}
		ids = append(ids, r.TaskID)
		require.Less(h.t, len(ids), 10_000)
	}
}

func newLimited(t *testing.T, maxSize int64) *hoard {
	store, err := Open(filepath.Join(t.TempDir(), "private", "store.db"), Options{MaxSize: maxSize})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	return &hoard{store, lease, t}
}

func TestFullStoreKeepsRoomForFinishing(t *testing.T) {
	for _, c := range []struct {
		maxSize int64
		size    int
	}{{32 << 20, 20_000}, {32 << 20, 300_000}} {
		t.Run(fmt.Sprintf("%d bytes, records of %d", c.maxSize, c.size), func(t *testing.T) {
			h := newLimited(t, c.maxSize)
			h.home.file.db.NoSync, h.home.file.db.NoGrowSync = true, true // this is about room
			claims := h.fillUp(agentjob.StateClaimed, c.size)
			require.NotEmpty(t, claims)
			require.ErrorIs(t, h.BindProvider(t.Context(), "print", "agent-1"), agentjob.ErrStoreFull, "a worker's test")
			saves := h.fillUp(agentjob.StateSaved, c.size)
			require.NotEmpty(t, saves)
			require.LessOrEqual(t, h.size(), c.maxSize)

			for _, id := range saves { // ends with the text, as of a refused reply
				r := rec(id, agentjob.StateEnded, "refused")
				r.Content.Response = bytes.Repeat([]byte("x"), c.size)
				require.NoError(t, h.lease.Put(t.Context(), r))
			}
			// A late write for which there is no room yet is tried again each second.
			require.Eventually(t, func() bool {
				n := 0
				for _, err := range h.lease.Records(t.Context()) {
					if err != nil {
						return false
					}
					n++
				}
				return n == len(claims)+len(saves)
			}, 30*time.Second, 10*time.Millisecond)
			for _, id := range append(claims, saves...) {
				require.NoError(t, h.lease.Delete(t.Context(), id))
			}
			require.Eventually(t, func() bool {
				for range h.lease.Records(t.Context()) {
					return false
				}
				return true
			}, 30*time.Second, 10*time.Millisecond)
			require.NoError(t, h.BindProvider(t.Context(), "print", "agent-1"))
			again := h.fillUp(agentjob.StateClaimed, c.size)
			require.Greater(t, len(again), len(claims)*9/10, "the room is there again")
			require.LessOrEqual(t, h.size(), c.maxSize)
		})
	}
}

func TestStoreThatIsLargerThanItMayBeCanBeEmptied(t *testing.T) {
	h := newHoard(t)
	h.home.file.db.NoSync = true
	for i := range 120 {
		h.put(fmt.Sprint("task-", i), agentjob.StateSaved, 300_000)
	}
	require.Greater(t, h.size(), int64(40<<20))
	require.NoError(t, h.Close())
	store, err := Open(h.home.path, Options{MaxSize: 32 << 20})
	require.NoError(t, err)
	defer store.Close()
	h.Store = store
	h.lease, err = store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.ErrorIs(t, h.lease.Put(t.Context(), rec("new", agentjob.StateClaimed, "")), agentjob.ErrStoreFull)
	for i := range 120 {
		require.NoError(t, h.lease.Delete(t.Context(), fmt.Sprint("task-", i)))
	}
	require.Empty(t, records(t, h.lease))
	require.NoError(t, h.lease.Put(t.Context(), rec("new", agentjob.StateClaimed, "")))
	require.NoError(t, store.Close())
	require.Less(t, h.size(), int64(32<<20))
}

func TestMaxSizeIsChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "store.db")
	for _, bad := range []int64{-1, 1, 32<<20 - 1} {
		_, err := Open(path, Options{MaxSize: bad})
		require.ErrorContains(t, err, "MaxSize")
		_, err = os.Stat(path)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}
