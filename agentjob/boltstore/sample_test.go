package boltstore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

// A sample is a store's file with what is in it.
type sample struct {
	path    string // with its key file beside it
	data    []byte
	records []agentjob.Record
	bound   map[string]string
}

// newSample makes a store with pages of every kind: branches, leaves, overflow, small buckets, free ones.
func newSample(t testing.TB) *sample {
	s := &sample{path: newPath(t), bound: map[string]string{"print-1": "agent-1", "print-2": "agent-2"}}
	store, err := boltstore.Open(s.path, boltstore.Options{})
	require.NoError(t, err)
	for print, provider := range s.bound {
		require.NoError(t, store.BindProvider(t.Context(), print, provider))
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, agent := range []struct {
		id      string
		records int
	}{{"agent-1", 60}, {"agent-2", 1}} {
		lease, err := store.Acquire(t.Context(), agent.id)
		require.NoError(t, err)
		for i := range agent.records {
			rec := agentjob.Record{Provider: agent.id, TaskID: fmt.Sprintf("task-%03d", i), ChatID: "chat", State: agentjob.StateClaimed, ClaimedAt: at}
			switch i % 4 {
			case 1:
				rec.State, rec.SavedAt, rec.Content.Response = agentjob.StateSaved, at, bytes.Repeat([]byte("reply "), 1+i*i)
			case 2:
				rec.State, rec.EndedAt, rec.End, rec.Status = agentjob.StateEnded, at, agentjob.EndRejected, 409
			}
			require.NoError(t, lease.Put(t.Context(), rec))
			s.records = append(s.records, rec)
		}
	}
	require.NoError(t, store.Close())
	s.data, err = os.ReadFile(s.path)
	require.NoError(t, err)
	require.Greater(t, len(s.data), 20*os.Getpagesize())
	return s
}

// place gives the store's file this content, in place of whatever there is.
func (s *sample) place(t testing.TB, data []byte) {
	for _, name := range s.setAside(t) {
		require.NoError(t, os.Remove(name))
	}
	require.NoError(t, os.WriteFile(s.path, data, 0o600))
}

func (s *sample) setAside(t testing.TB) []string {
	names, err := filepath.Glob(s.path + ".damaged-*")
	require.NoError(t, err)
	return names
}

// content opens the store and reads everything.
func (s *sample) content(t testing.TB) (records []agentjob.Record, bound map[string]string, err error) {
	store, err := boltstore.Open(s.path, boltstore.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { require.NoError(t, store.Close()) }()
	bound = map[string]string{}
	for print := range s.bound {
		if bound[print], err = store.Provider(t.Context(), print); err != nil {
			return nil, nil, err
		}
	}
	for _, id := range []string{"agent-1", "agent-2"} {
		lease, err := store.Acquire(t.Context(), id)
		require.NoError(t, err)
		for rec, err := range lease.Records(t.Context()) {
			if err != nil {
				return nil, nil, err
			}
			records = append(records, rec)
		}
	}
	slices.SortFunc(records, func(a, b agentjob.Record) int { return strings.Compare(a.Provider+a.TaskID, b.Provider+b.TaskID) })
	return records, bound, nil
}

// opensWholeOrNotAtAll tells which, and fails the test if it is something between.
func (s *sample) opensWholeOrNotAtAll(t testing.TB, what string) (whole bool) {
	records, bound, err := s.content(t)
	if err != nil {
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged, what)
		_, again := boltstore.Open(s.path, boltstore.Options{})
		require.ErrorIs(t, again, agentjob.ErrStoreDamaged, what)
		return false
	}
	require.Equal(t, s.records, records, what)
	require.Equal(t, s.bound, bound, what)
	return true
}

// write changes pages everywhere, and leaves what was there.
func (s *sample) write(t testing.TB) {
	store, err := boltstore.Open(s.path, boltstore.Options{})
	require.NoError(t, err)
	for print, provider := range s.bound {
		lease, err := store.Acquire(t.Context(), provider)
		require.NoError(t, err)
		for _, id := range []string{"a", "task-015b", "task-030b", "z"} {
			require.NoError(t, lease.Put(t.Context(), agentjob.Record{Provider: provider, TaskID: id, State: agentjob.StateEnded}))
			require.NoError(t, lease.Delete(t.Context(), id))
		}
		require.NoError(t, store.BindProvider(t.Context(), print, provider))
	}
	require.NoError(t, store.Close())
}
