package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/agentjob/agentjob-go/agentjob"
)

func openTest(t *testing.T) (*Store, agentjob.Lease) {
	t.Helper()
	store, err := Open(filepath.Join(t.TempDir(), "private", "store.db"), Options{})
	require.NoError(t, err)
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	return store, lease
}

func rec(id string, state agentjob.State, reason string) agentjob.Record {
	return agentjob.Record{Provider: "agent-1", TaskID: id, State: state, Reason: reason}
}

// onDisk returns the ids that are in the file, without asking the writer.
func onDisk(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	require.NoError(t, s.home.view(func(tx *bolt.Tx) error {
		bucket := place{providersBucket, "agent-1", ""}.in(tx)
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(k, _ []byte) error { ids = append(ids, string(k)); return nil })
	}))
	return ids
}

// fill makes the disk full: nothing may grow the file any more. Free pages
// are left in it, as in any file that has been in use.
func fill(t *testing.T, s *Store) (empty func()) {
	t.Helper()
	for _, size := range []int{100_000, 10} {
		require.NoError(t, s.BindProvider(t.Context(), "filler", strings.Repeat("x", size)))
	}
	info, err := s.home.file.os.Stat()
	require.NoError(t, err)
	limit := func(size int) {
		tx, err := s.home.file.db.Begin(true) // keeps the writer out
		require.NoError(t, err)
		s.home.file.db.MaxSize = size
		require.NoError(t, tx.Rollback())
	}
	limit(int(info.Size()))
	return func() { limit(0) }
}

var huge = strings.Repeat("huge ", 1<<20)

func TestLateWritesComeWithinTheirDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, lease := openTest(t)
		require.NoError(t, lease.Put(t.Context(), rec("late", agentjob.StateEnded, "")))
		synctest.Wait()
		assert.Empty(t, onDisk(t, store), "a late write waits for company")
		time.Sleep(lazyDelay) // in the bubble's time
		synctest.Wait()
		assert.Equal(t, []string{"late"}, onDisk(t, store))

		require.NoError(t, lease.Put(t.Context(), rec("late 2", agentjob.StateEnded, "")))
		require.NoError(t, lease.Put(t.Context(), rec("durable", agentjob.StateClaimed, "")))
		assert.Equal(t, []string{"durable", "late", "late 2"}, onDisk(t, store), "a durable write takes the late ones with it")
		require.NoError(t, store.Close())
	})
}

func TestOneFailureInABatchIsNobodyElses(t *testing.T) {
	store, _ := openTest(t)
	defer store.Close()
	fill(t, store)
	var batch []*op
	for i := range 20 {
		id, size := fmt.Sprint("task-", i), 10
		if i == 7 {
			size = len(huge)
		}
		o := &op{action: put, place: place{bucket: fingerprintsBucket, key: id}, value: make([]byte, size), done: make(chan error, 1)}
		if i == 13 {
			o.place.key = "" // refused by bbolt within the transaction
		}
		batch = append(batch, o)
	}
	assert.Empty(t, store.writer.commit(batch), "nothing to try again: each was answered")
	for i, o := range batch {
		switch err := <-o.done; i {
		case 7:
			assert.ErrorIs(t, err, bolterrors.ErrMaxSizeReached)
		case 13:
			assert.ErrorIs(t, err, bolterrors.ErrKeyRequired)
		default:
			assert.NoError(t, err)
			got, err := store.Provider(t.Context(), o.place.key)
			assert.NoError(t, err)
			assert.Len(t, got, 10)
		}
	}
}

func TestFullDiskRefusesPutsAndTakesDeletes(t *testing.T) {
	store, lease := openTest(t)
	defer store.Close()
	require.NoError(t, lease.Put(t.Context(), rec("old", agentjob.StateSaved, "before")))
	fill(t, store)
	require.ErrorIs(t, lease.Put(t.Context(), rec("old", agentjob.StateSaved, huge)), bolterrors.ErrMaxSizeReached)
	for r, err := range lease.Records(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, "before", r.Reason, "the old record is still there")
	}
	require.NoError(t, lease.Delete(t.Context(), "old"))
	require.NoError(t, lease.Put(t.Context(), rec("small", agentjob.StateSaved, "")))
	require.Equal(t, []string{"small"}, onDisk(t, store))
}

func TestFailedLateWriteIsReportedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, lease := openTest(t)
		emptied := fill(t, store)
		require.NoError(t, lease.Put(t.Context(), rec("late", agentjob.StateEnded, huge)), "it fails later")
		require.NoError(t, lease.Put(t.Context(), rec("durable", agentjob.StateClaimed, "")), "not the error of another")
		for _, err := range lease.Records(t.Context()) {
			require.ErrorIs(t, err, bolterrors.ErrMaxSizeReached, "Records can't show it")
		}
		require.ErrorIs(t, lease.Put(t.Context(), rec("late 2", agentjob.StateEnded, huge)), bolterrors.ErrMaxSizeReached, "no longer lazy")
		require.NoError(t, lease.Delete(t.Context(), "durable"))
		require.Empty(t, onDisk(t, store))

		other, err := store.Acquire(t.Context(), "agent-2")
		require.NoError(t, err)
		require.NoError(t, other.Close(), "not the failure of another provider")

		emptied()
		time.Sleep(retryDelay) // in the bubble's time
		synctest.Wait()
		require.Equal(t, []string{"late"}, onDisk(t, store))
		require.False(t, store.writer.failing.Load())
		require.NoError(t, store.Close())
	})
}

func TestCloseReportsLateWritesThatFailed(t *testing.T) {
	store, lease := openTest(t)
	fill(t, store)
	require.NoError(t, lease.Put(t.Context(), rec("late", agentjob.StateEnded, huge)))
	err := lease.Close()
	require.ErrorIs(t, err, bolterrors.ErrMaxSizeReached)
	require.ErrorContains(t, err, `"late"`)
	require.ErrorIs(t, store.Close(), bolterrors.ErrMaxSizeReached)
}

func TestRetryDoesNotOvertakeALaterWrite(t *testing.T) {
	store, lease := openTest(t)
	emptied := fill(t, store)
	require.NoError(t, lease.Put(t.Context(), rec("task", agentjob.StateEnded, huge)))
	require.NoError(t, lease.Put(t.Context(), rec("task", agentjob.StateClaimed, "newer")))
	emptied()
	for r, err := range lease.Records(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, rec("task", agentjob.StateClaimed, "newer"), r)
	}
	require.NoError(t, store.Close())
}

func TestPutStopsWaitingWhenItsContextEnds(t *testing.T) {
	store, lease := openTest(t)
	tx, err := store.home.file.db.Begin(true) // the writer can't go on
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	const puts = 2*maxBatch + 10 // some wait for their result, some for the queue
	for i := range puts {
		go func() { results <- lease.Put(ctx, rec(fmt.Sprint(i), agentjob.StateClaimed, "")) }()
	}
	require.Eventually(t, func() bool { return len(store.writer.queue) == maxBatch }, 10*time.Second, time.Millisecond)
	cancel()
	for range puts {
		require.ErrorIs(t, <-results, context.Canceled)
	}
	require.NoError(t, tx.Rollback())
	require.NoError(t, lease.Put(t.Context(), rec("after", agentjob.StateClaimed, "")))
	require.Contains(t, onDisk(t, store), "after")
	require.NoError(t, store.Close())
}

func TestPanicOfBoltIsAnErrorAndFinal(t *testing.T) {
	store, lease := openTest(t)
	err := store.home.file.update(func(*bolt.Tx) error { panic("page 7 is a duck") })
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	require.ErrorIs(t, lease.Put(t.Context(), rec("a", agentjob.StateClaimed, "")), agentjob.ErrStoreDamaged)
	_, err = store.Provider(t.Context(), "print")
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	require.NoError(t, store.Close())
	again, err := Open(store.home.path, Options{})
	require.NoError(t, err, "the lock was given back")
	require.NoError(t, again.Close())
}

func TestSwappedRecordsAreDamage(t *testing.T) {
	store, lease := openTest(t)
	defer store.Close()
	for _, id := range []string{"a", "b"} {
		require.NoError(t, lease.Put(t.Context(), rec(id, agentjob.StateClaimed, "")))
	}
	require.NoError(t, store.home.file.update(func(tx *bolt.Tx) error {
		records := place{providersBucket, "agent-1", ""}.in(tx)
		return records.Put([]byte("a"), bytes.Clone(records.Get([]byte("b"))))
	}))
	var last error
	for _, err := range lease.Records(t.Context()) {
		last = err
	}
	require.ErrorIs(t, last, agentjob.ErrStoreDamaged)
	require.ErrorContains(t, last, `"b" is in the place of task "a"`)
}

// The sync of the last write of a process that died may have failed. Nobody knows, so it is made good before anything is built on it.
func TestFirstWriteMakesTheLastOneOfAnotherProcessDurable(t *testing.T) {
	store, lease := openTest(t)
	require.NotZero(t, store.home.file.doubtful)
	f := store.home.file
	require.NoError(t, lease.Put(t.Context(), rec("a", agentjob.StateClaimed, "")))
	require.NoError(t, store.Close())
	require.Zero(t, f.doubtful)
}
