package boltstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
)

func TestDeletedIsGoneFromTheFileInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHoard(t)
		gone, left := h.fillAndEmpty()
		before := h.size()
		time.Sleep(compactDelay + lazyDelay) // in the bubble's time
		synctest.Wait()
		require.Empty(t, h.found(gone...))
		require.Less(t, h.size(), before/2)
		require.Equal(t, left, records(t, h.lease))
		require.False(t, h.home.file.db.NoSync || h.home.file.db.NoGrowSync, "the copy is made without syncs, and used with them")

		h.put("later", agentjob.StateSaved, 20_000)
		later := h.sealed("later")
		require.NoError(t, h.lease.Delete(t.Context(), "later"))
		time.Sleep(compactDelay + lazyDelay)
		synctest.Wait()
		require.Empty(t, h.found(later, "later"))
		require.NoError(t, h.Close())
	})
}

func TestNothingStaleIsNotCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHoard(t)
		h.put("a", agentjob.StateClaimed, 0)
		require.NoError(t, h.BindProvider(t.Context(), "print", "agent-1"))
		require.NoError(t, h.BindProvider(t.Context(), "print", "agent-1"), "again the same")
		require.NoError(t, h.lease.Delete(t.Context(), "absent"))
		before, err := os.Stat(h.home.path)
		require.NoError(t, err)
		time.Sleep(2 * compactDelay)
		require.NoError(t, h.Close())
		after, err := os.Stat(h.home.path)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after))
	})
}

func TestDeletedIsGoneAfterClose(t *testing.T) {
	h := newHoard(t)
	gone, left := h.fillAndEmpty()
	before := h.size()
	require.NoError(t, h.Close())
	require.Empty(t, h.found(gone...))
	require.Less(t, h.size(), before/2)
	require.Equal(t, left, reread(t, h.home.path))
}

func TestDeletedIsGoneAfterACrashAndOpen(t *testing.T) {
	h := newHoard(t)
	gone, left := h.fillAndEmpty()
	crashed := h.copyFolder(t)
	require.NoError(t, h.Close())

	store, err := Open(crashed, Options{})
	require.NoError(t, err)
	h.home.path = crashed
	require.Empty(t, h.found(gone...), "before it is closed")
	require.NoError(t, store.Close())
	require.Equal(t, left, reread(t, crashed))
}

// onStep sets what happens at each step of compactions, for the rest of a test. What it uses is changed by tell.
func onStep(t *testing.T, do func(step string) error) (tell func(func())) {
	var mu sync.Mutex
	before := atStep
	atStep = func(step string) error {
		mu.Lock()
		defer mu.Unlock()
		return do(step)
	}
	t.Cleanup(func() { atStep = before })
	return func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		change()
	}
}

func TestCrashAtAnyStepOfACompactionLosesNothing(t *testing.T) {
	steps := map[string]int{}
	var crashed []string
	var h *hoard
	tell := onStep(t, func(step string) error {
		if steps[step]++; h != nil && steps[step] < 10 {
			crashed = append(crashed, h.copyFolder(t))
		}
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		hoard := newHoard(t)
		_, left := hoard.fillAndEmpty()
		tell(func() { h = hoard; clear(steps) })
		time.Sleep(compactDelay + lazyDelay) // one while it is open
		synctest.Wait()
		hoard.put("recognisable-00", agentjob.StateEnded, 0)
		left["recognisable-00"] = agentjob.StateEnded
		before := 0
		tell(func() { before = len(crashed) })
		require.NoError(t, hoard.Close()) // one at the end
		tell(func() { h = nil })
		for _, step := range []string{"begun", "part", "settled", "renamed"} {
			require.GreaterOrEqual(t, steps[step], 2, step)
		}
		for i, path := range crashed {
			expected := maps.Clone(left)
			if i < before {
				expected["recognisable-00"] = agentjob.StateSaved
			}
			require.Equal(t, expected, reread(t, path), "crash %d", i)
			require.NoFileExists(t, path+".partial")
		}
	})
}

func TestFailureAtAnyStepLeavesTheOldFileAndIsTriedAgain(t *testing.T) {
	errFull := errors.New("the disk is full, says the test")
	for _, failing := range []string{"begun", "part", "settled"} {
		t.Run(failing, func(t *testing.T) {
			fails := true
			tell := onStep(t, func(step string) error {
				if fails && step == failing {
					return errFull
				}
				return nil
			})
			synctest.Test(t, func(t *testing.T) {
				h := newHoard(t)
				gone, left := h.fillAndEmpty()
				time.Sleep(compactDelay + lazyDelay)
				synctest.Wait()
				require.NotEmpty(t, h.found(gone...))
				require.NoFileExists(t, h.home.partial())
				h.put("meanwhile", agentjob.StateSaved, 20_000)
				left["meanwhile"] = agentjob.StateSaved
				require.Equal(t, left, records(t, h.lease))

				crashed := h.copyFolder(t)
				store, err := Open(crashed, Options{})
				require.NoError(t, err, "a store that can't be compacted opens all the same")
				err = store.Close()
				require.ErrorIs(t, err, errFull)
				require.ErrorContains(t, err, "still in the file")

				tell(func() { fails = false })
				time.Sleep(compactRetry)
				synctest.Wait()
				require.Empty(t, h.found(gone...))
				require.Equal(t, left, records(t, h.lease))
				require.NoError(t, h.Close())
				require.Equal(t, left, reread(t, crashed))
			})
		})
	}
}

// A power cut could bring the old file back, without what would be written to the new one.
func TestNothingIsPromisedWithAFileWhoseNameIsNotOnDisk(t *testing.T) {
	errSync := errors.New("can't be synced, says the test")
	fails := false
	tell := onStep(t, func(step string) error {
		if fails && step == "renamed" {
			return errSync
		}
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHoard(t)
		_, left := h.fillAndEmpty()
		crashed := h.copyFolder(t)
		tell(func() { fails = true })
		time.Sleep(compactDelay + lazyDelay)
		synctest.Wait()
		require.ErrorIs(t, h.lease.Put(t.Context(), rec("later", agentjob.StateClaimed, "")), errSync)
		_, err := Open(crashed, Options{})
		require.ErrorIs(t, err, errSync)
		tell(func() { fails = false })
		require.NoError(t, h.Close())
		require.Equal(t, left, reread(t, h.home.path))
		require.Equal(t, left, reread(t, crashed))
	})
}

func TestTheLockIsNeverFreeDuringACompaction(t *testing.T) {
	var path string
	tried := 0
	tell := onStep(t, func(step string) error {
		if path != "" {
			tried++
			_, err := Open(path, Options{})
			assert.ErrorIs(t, err, agentjob.ErrLeaseHeld, step)
		}
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHoard(t)
		h.fillAndEmpty()
		tell(func() { path = h.home.path })
		time.Sleep(compactDelay + time.Hour)
		synctest.Wait()
		tell(func() { require.Greater(t, tried, 3); path = "" })
		require.NoError(t, h.Close())
	})
}

// Writers go on while the file is compacted again and again; in the end everything is as the last write of each said.
func TestWritesDuringCompactionsAreKept(t *testing.T) {
	before := compactDelay
	compactDelay = 0
	t.Cleanup(func() { compactDelay = before })
	compactions := 0
	enough := make(chan struct{})
	onStep(t, func(step string) error {
		if step == "renamed" {
			if compactions++; compactions == 20 {
				close(enough)
			}
		}
		return nil
	})
	h := newHoard(t)
	expected := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for writer := range 4 {
		all.Go(func() {
			last := map[string]string{}
			for i := 0; ; i++ {
				select {
				case <-enough:
					mu.Lock()
					maps.Copy(expected, last)
					mu.Unlock()
					return
				default:
				}
				id, text := fmt.Sprintf("%d/%d", writer, i%50), strings.Repeat(fmt.Sprint(i), 500)
				err := h.lease.Put(context.Background(), rec(id, agentjob.StateSaved, text))
				last[id] = text
				if err == nil && i%7 == 3 {
					err = h.lease.Delete(context.Background(), id)
					delete(last, id)
				}
				if !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	all.Wait()
	found := map[string]string{}
	for r, err := range h.lease.Records(t.Context()) {
		require.NoError(t, err)
		found[r.TaskID] = r.Reason
	}
	require.Equal(t, expected, found)
	require.NoError(t, h.Close())
	require.Len(t, reread(t, h.home.path), len(expected))
	entries, err := os.ReadDir(filepath.Dir(h.home.path))
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.Contains(e.Name(), "partial") }))
}
