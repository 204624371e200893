package filestore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
)

func TestDamagedRecordsAreSetAsideUntilToldToGoOn(t *testing.T) {
	whole := filled(t, "a", "b")
	one, err := os.ReadFile(filepath.Join(whole, "providers", "agent-1", "a.record"))
	require.NoError(t, err)
	other, err := os.ReadFile(filepath.Join(whole, "providers", "agent-1", "b.record"))
	require.NoError(t, err)
	flipped := bytes.Clone(one)
	flipped[len(flipped)-1] ^= 1

	for name, damaged := range map[string][]byte{
		"empty":                  {},
		"zeros":                  make([]byte, len(one)),
		"text":                   []byte("not a record\n"),
		"cut in the envelope":    one[:20],
		"cut before the content": one[:bytes.IndexByte(one, '\n')],
		"cut in the content":     one[:len(one)-1],
		"a flipped bit":          flipped,
		"another's record":       other,
		"an altered envelope":    bytes.Replace(one, []byte("saved"), []byte("ended"), 1),
	} {
		t.Run(name, func(t *testing.T) {
			path := filled(t, "a", "c")
			record := filepath.Join(path, "providers", "agent-1", "a.record")
			// The store's own key, so that only what is tried is wrong.
			key, err := os.ReadFile(filepath.Join(whole, "key"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(path, "key"), key, 0o600))
			good, err := os.ReadFile(filepath.Join(whole, "providers", "agent-1", "b.record"))
			require.NoError(t, err)
			require.NoError(t, os.Remove(filepath.Join(path, "providers", "agent-1", "c.record")))
			require.NoError(t, os.WriteFile(filepath.Join(path, "providers", "agent-1", "b.record"), good, 0o600))
			require.NoError(t, os.WriteFile(record, damaged, 0o600))

			aside := filepath.Join(path, "damaged", "providers", "agent-1", "a.record")
			store := reopened(t, path)
			lease := acquire(t, store, "agent-1")
			for range 2 { // never only the good ones
				_, err = read(t, lease)
				requireDamaged(t, err, path, aside)
			}
			require.NoError(t, lease.Close())
			_, err = store.Acquire(t.Context(), "agent-1")
			requireDamaged(t, err, path, aside)
			acquire(t, store, "agent-2") // others are served
			require.NoError(t, store.Close())
			for range 2 {
				store := reopened(t, path)
				_, err = store.Acquire(t.Context(), "agent-1")
				requireDamaged(t, err, path, aside)
				require.NoError(t, store.Close())
			}

			left, err := filestore.GoOn(path)
			require.NoError(t, err)
			require.Len(t, left, 1)
			kept, err := os.ReadFile(left[0])
			require.NoError(t, err)
			require.Equal(t, damaged, kept)
			ids, err := read(t, leaseOf(t, path))
			require.NoError(t, err)
			require.Equal(t, []string{"b"}, ids)
		})
	}
}

func requireDamaged(t *testing.T, err error, path, aside string) {
	t.Helper()
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	var damaged *filestore.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, path, damaged.Path)
	require.Equal(t, []string{aside}, damaged.SetAside)
	require.FileExists(t, aside)
	require.ErrorContains(t, err, filepath.Base(aside))
	require.ErrorContains(t, err, "filestore.GoOn")
}

func TestAllDamagedRecordsAreFoundAtOnce(t *testing.T) {
	path := filled(t, "a", "b", "c", "d")
	for _, id := range []string{"a", "c", "d"} {
		require.NoError(t, os.Truncate(filepath.Join(path, "providers", "agent-1", id+".record"), 30))
	}
	_, err := read(t, leaseOf(t, path))
	var damaged *filestore.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.Len(t, damaged.SetAside, 3)
}

func TestRepairedFileIsReadAgain(t *testing.T) {
	path := filled(t, "a", "b")
	record := filepath.Join(path, "providers", "agent-1", "a.record")
	good, err := os.ReadFile(record)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(record, 30))
	store := reopened(t, path)
	_, err = read(t, acquire(t, store, "agent-1"))
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	require.NoError(t, store.Close())
	require.NoError(t, os.WriteFile(record, good, 0o600)) // from a backup
	require.NoError(t, os.RemoveAll(filepath.Join(path, "damaged")))
	ids, err := read(t, leaseOf(t, path))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b"}, ids)
}

func TestWhatANewerVersionWroteStays(t *testing.T) {
	for _, file := range []string{"format", "providers/agent-1/a.record"} {
		t.Run(file, func(t *testing.T) {
			path := filled(t, "a")
			newer := "2\n"
			if file != "format" {
				newer = `{"format":2,"what":"ever"}`
			}
			require.NoError(t, os.WriteFile(filepath.Join(path, file), []byte(newer), 0o600))
			before := files(t, path)
			for range 2 {
				store, err := filestore.Open(path, filestore.Options{})
				if err == nil {
					_, err = read(t, acquire(t, store, "agent-1"))
					require.NoError(t, store.Close())
				}
				require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
				require.ErrorIs(t, err, agentjob.ErrStoreNewer)
				require.ErrorContains(t, err, "update this program")
				require.ErrorContains(t, err, path)
			}
			left, err := filestore.GoOn(path)
			require.NoError(t, err)
			require.Empty(t, left)
			require.Equal(t, before, files(t, path))
			text, err := os.ReadFile(filepath.Join(path, file))
			require.NoError(t, err)
			require.Equal(t, newer, string(text))
		})
	}
}

func TestDamagedFormat(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "cut": "1", "text": "one\n", "zero": "0\n", "padded": "01\n", "zeros": "\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			path := filled(t, "a")
			require.NoError(t, os.WriteFile(filepath.Join(path, "format"), []byte(text), 0o600))
			for range 2 {
				_, err := filestore.Open(path, filestore.Options{})
				requireDamaged(t, err, path, filepath.Join(path, "damaged", "format"))
			}
			left, err := filestore.GoOn(path)
			require.NoError(t, err)
			require.Len(t, left, 1)
			ids, err := read(t, leaseOf(t, path))
			require.NoError(t, err)
			require.Equal(t, []string{"a"}, ids, "the records are as good as before")
		})
	}
}

func TestMissingFormatIsNotTakenForANewStore(t *testing.T) {
	path := filled(t, "a")
	require.NoError(t, os.Remove(filepath.Join(path, "format")))
	for range 2 {
		_, err := filestore.Open(path, filestore.Options{})
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
		require.ErrorContains(t, err, "format is missing")
	}
	left, err := filestore.GoOn(path)
	require.NoError(t, err)
	require.Empty(t, left)
	ids, err := read(t, leaseOf(t, path))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, ids)
}

func TestDamagedBindingIsSetAside(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "cut": "fingerprint \"print\"\nprovider \"age", "of another": "fingerprint \"other\"\nprovider \"agent-1\"\n",
		"longer": "fingerprint \"print\"\nprovider \"agent-1\"\n\n", "spelt otherwise": "fingerprint \"print\"\nprovider `agent-1`\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			store := reopened(t, path)
			require.NoError(t, store.BindProvider(t.Context(), "print", "agent-1"))
			require.NoError(t, os.WriteFile(filepath.Join(path, "fingerprints", "print.provider"), []byte(text), 0o600))
			for range 2 {
				_, err := store.Provider(t.Context(), "print")
				requireDamaged(t, err, path, filepath.Join(path, "damaged", "fingerprints", "print.provider"))
			}
			other, err := store.Provider(t.Context(), "other")
			require.NoError(t, err)
			require.Empty(t, other)
			require.NoError(t, store.Close())
			_, err = filestore.GoOn(path)
			require.NoError(t, err)
			provider, err := reopened(t, path).Provider(t.Context(), "print")
			require.NoError(t, err)
			require.Empty(t, provider, "the platform is asked again")
		})
	}
}

func TestGoOnTwiceKeepsBothTimes(t *testing.T) {
	path := filled(t, "a", "b")
	for _, id := range []string{"a", "b"} {
		require.NoError(t, os.Truncate(filepath.Join(path, "providers", "agent-1", id+".record"), 30))
		store := reopened(t, path)
		_, err := read(t, acquire(t, store, "agent-1"))
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
		require.NoError(t, store.Close())
		left, err := filestore.GoOn(path)
		require.NoError(t, err)
		require.Len(t, left, 1)
	}
	kept := 0
	for _, file := range files(t, path) {
		if strings.HasPrefix(file, "damaged-") {
			kept++
		}
	}
	require.Equal(t, 2, kept)
}

func TestGoOnNeedsTheFolder(t *testing.T) {
	path := newPath(t)
	reopened(t, path)
	_, err := filestore.GoOn(path)
	require.ErrorIs(t, err, agentjob.ErrLeaseHeld)
	assert.NoDirExists(t, filepath.Join(path, "damaged"))
}
