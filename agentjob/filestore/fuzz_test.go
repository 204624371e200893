package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// Whatever is in a record's file: it is read as that record, or refused and kept.
func FuzzRecordFile(f *testing.F) {
	key, err := secret.ParseKey("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=") // so that corpora can be opened
	require.NoError(f, err)
	keys := secret.KeyFunc(func(context.Context) ([]secret.Key, error) { return []secret.Key{key}, nil })
	sealer, err := secret.NewSealer(f.Context(), keys)
	require.NoError(f, err)
	for _, rec := range []agentjob.Record{
		{Provider: "agent-1", TaskID: "task", State: agentjob.StateClaimed},
		{Provider: "agent-1", TaskID: "task", State: agentjob.StateSaved, Content: agentjob.Content{Response: []byte("a reply")}},
		{Provider: "agent-1", TaskID: "other", State: agentjob.StateEnded, End: agentjob.EndExpired},
		{Provider: "agent-1", TaskID: "task", ChatID: "\xff", State: agentjob.StateEnded},
	} {
		data, err := agentjob.EncodeRecord(rec, sealer)
		require.NoError(f, err)
		f.Add(data)
		f.Add(data[:len(data)-1])
	}
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte{})

	f.Fuzz(func(t *testing.T, data []byte) {
		path := newPath(t)
		open := func() (*filestore.Store, agentjob.Lease, error) {
			store, err := filestore.Open(path, filestore.Options{Keys: keys})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			lease, err := store.Acquire(t.Context(), "agent-1")
			return store, lease, err
		}
		store, lease, err := open()
		require.NoError(t, err)
		record := filepath.Join(path, "providers", "agent-1", "task.record")
		require.NoError(t, os.WriteFile(record, data, 0o600))

		var got []agentjob.Record
		for rec, problem := range lease.Records(t.Context()) {
			if err = problem; err == nil {
				got = append(got, rec)
			}
		}
		var damaged *filestore.DamagedError
		switch {
		case err == nil:
			require.Len(t, got, 1)
			require.Equal(t, "agent-1", got[0].Provider)
			require.Equal(t, "task", got[0].TaskID)
			require.NoError(t, lease.Put(t.Context(), got[0]), "what was read can be written")
			return
		case errors.As(err, &damaged):
			require.NoFileExists(t, record)
			require.Len(t, damaged.SetAside, 1)
			record = damaged.SetAside[0]
		default:
			require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
			require.True(t, errors.Is(err, agentjob.ErrStoreNewer) || errors.Is(err, secret.ErrKeyUnknown), "%v", err)
		}
		require.Empty(t, got)
		kept, err := os.ReadFile(record)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, kept), "the file was changed")

		require.NoError(t, store.Close())
		_, lease, err = open()
		if err == nil {
			_, err = read(t, lease)
		}
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged, "it is refused again")
	})
}
