package boltstore

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

// FuzzFile opens files of any content as stores. Whatever opens must be a store that works.
// To run it for long: go test ./agentjob/boltstore -run NONE -fuzz FuzzFile -fuzztime 10m -fuzzminimizetime 1s -parallel 1
func FuzzFile(f *testing.F) {
	// All processes of a fuzzing run must open what one has sealed.
	key, err := secret.ParseKey(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32)))
	require.NoError(f, err)
	keys := secret.KeyFunc(func(context.Context) ([]secret.Key, error) { return []secret.Key{key}, nil })
	for _, records := range []int{0, 3, 40} {
		data := smallStore(f, keys, records)
		f.Add(data, false)
		f.Add(data, true)
	}
	f.Add([]byte("not a store"), true)
	f.Fuzz(func(t *testing.T, data []byte, mended bool) {
		path := filepath.Join(t.TempDir(), "private", "store.db")
		require.NoError(t, privatefile.EnsureDir(filepath.Dir(path)))
		if mended {
			data = mend(t, bytes.Clone(data), filepath.Join(filepath.Dir(path), "mending"))
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))
		before, providers, err := readAll(t, path, keys)
		if err != nil {
			require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
			return
		}
		// It opened, so it must take writes and show them, and nothing else may change.
		store, err := Open(path, Options{Keys: keys})
		require.NoError(t, err)
		for i, provider := range append(providers, "new") {
			lease, err := store.Acquire(t.Context(), provider)
			require.NoError(t, err)
			for n := range 3 {
				r := agentjob.Record{Provider: provider, TaskID: fmt.Sprint("fuzz-", n), State: agentjob.StateClaimed, Reason: fmt.Sprint(i)}
				require.NoError(t, lease.Put(t.Context(), r))
				before[provider+"/"+r.TaskID] = r
			}
			require.NoError(t, lease.Delete(t.Context(), "fuzz-1"))
			delete(before, provider+"/fuzz-1")
		}
		require.NoError(t, store.Close())
		after, _, err := readAll(t, path, keys)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// smallStore returns a store's file of small pages.
func smallStore(t testing.TB, keys secret.KeySource, records int) []byte {
	path := filepath.Join(t.TempDir(), "private", "store.db")
	require.NoError(t, privatefile.EnsureDir(filepath.Dir(path)))
	made, err := newFile(path, bolt.Options{PageSize: 1024, NoGrowSync: true})
	require.NoError(t, err)
	require.NoError(t, made.close())
	store, err := Open(path, Options{Keys: keys})
	require.NoError(t, err)
	require.NoError(t, store.BindProvider(t.Context(), "print", "agent-1"))
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	for i := range records {
		r := rec(fmt.Sprint("task-", i), agentjob.StateClaimed, "")
		if i%3 == 1 {
			r.State, r.Content.Response = agentjob.StateSaved, bytes.Repeat([]byte("x"), i*100)
		}
		r.ClaimedAt = time.Date(2026, 11, 30, 12, 0, i, 0, time.UTC)
		require.NoError(t, lease.Put(t.Context(), r))
	}
	require.NoError(t, store.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// mend makes the checksums right, so that what is behind them is looked at, too.
func mend(t testing.TB, data []byte, scratch string) []byte {
	if len(data) < 80 {
		return data
	}
	for _, at := range []int{0, int(order.Uint32(data[24:]))} {
		if at < 0 || at > len(data)-80 {
			continue
		}
		sum := fnv.New64a()
		sum.Write(data[at+pageHeader : at+pageHeader+metaSize])
		order.PutUint64(data[at+pageHeader+metaSize:], sum.Sum64())
	}
	require.NoError(t, os.WriteFile(scratch, data, 0o600))
	file, err := os.Open(scratch)
	require.NoError(t, err)
	defer file.Close()
	var c contents
	if verify(file, c.visit) == nil && len(c.stored) == 8 {
		data = bytes.ReplaceAll(data, c.stored, binary.BigEndian.AppendUint64(nil, c.sum))
	}
	return data
}

// readAll opens a store and reads it, as far as it has ids that a lease can have.
func readAll(t testing.TB, path string, keys secret.KeySource) (records map[string]agentjob.Record, providers []string, err error) {
	store, err := Open(path, Options{Keys: keys})
	if err != nil {
		return nil, nil, err
	}
	defer func() { require.NoError(t, store.Close()) }()
	err = store.home.view(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(providersBucket)).ForEachBucket(func(name []byte) error {
			if checkKey(string(name)) == nil {
				providers = append(providers, string(name))
			}
			return nil
		})
	})
	require.NoError(t, err)
	records = map[string]agentjob.Record{}
	for _, provider := range providers {
		lease, err := store.Acquire(t.Context(), provider)
		require.NoError(t, err)
		for rec, err := range lease.Records(t.Context()) {
			if err != nil {
				return nil, nil, err
			}
			records[rec.Provider+"/"+rec.TaskID] = rec
		}
	}
	return records, providers, nil
}
