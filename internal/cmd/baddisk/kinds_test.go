package baddisk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
)

type localStore interface {
	agentjob.Store
	Close() error
}

// A kind is a local store, which lives at a path in a folder of its own.
type kind struct {
	name string
	open func(path string) (localStore, error)
	goOn func(path string) (setAside []string, err error) // the operator's decision after damage

	// damages are what can happen to a closed store that has a saved reply, and whether that reply survives it.
	damages map[string]damage
	newer   func(t *testing.T, path string) // makes it one that a newer version wrote
}

type damage struct {
	do           func(t *testing.T, path string)
	replyIsThere bool
}

var kinds = []kind{{
	name: "boltstore",
	open: func(path string) (localStore, error) { return boltstore.Open(path, boltstore.Options{}) },
	goOn: boltstore.StartAfresh,
	damages: map[string]damage{
		"emptied":      {do: truncate("", 0)},
		"cut in half":  {do: edit("", func(data []byte) []byte { return data[:len(data)/2] })},
		"overwritten":  {do: edit("", func(data []byte) []byte { return bytes.Repeat([]byte("lost\n"), len(data)/5) })},
		"zeroed":       {do: edit("", func(data []byte) []byte { clear(data); return data })},
		"a bit flips":  {do: edit("", flip)},
		"an old half":  {do: edit("", func(data []byte) []byte { copy(data[len(data)/2:], data); return data })},
		"key and file": {do: func(t *testing.T, path string) { truncate("", 0)(t, path); require.NoError(t, os.Remove(path+".key")) }},
	},
	newer: edit("", func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("format2"), []byte("format3")) }),
}, {
	name: "filestore",
	open: func(path string) (localStore, error) { return filestore.Open(path, filestore.Options{}) },
	goOn: filestore.GoOn,
	damages: map[string]damage{
		"a record is emptied":     {do: truncate("providers/*/*.record", 0)},
		"a record is cut":         {do: edit("providers/*/*.record", func(data []byte) []byte { return data[:len(data)/2] })},
		"a record is zeroed":      {do: edit("providers/*/*.record", func(data []byte) []byte { clear(data); return data })},
		"a bit of a record flips": {do: edit("providers/*/*.record", flip)},
		"the binding is cut":      {do: truncate("fingerprints/*.provider", 20), replyIsThere: true},
		"the format is emptied":   {do: truncate("format", 0), replyIsThere: true},
		"the format is gone": {do: func(t *testing.T, path string) {
			require.NoError(t, os.Remove(filepath.Join(path, "format")))
		}, replyIsThere: true},
	},
	newer: edit("format", func([]byte) []byte { return []byte("2\n") }),
}}

// each runs a test with every kind of store.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// edit changes the one file that a pattern below the path matches; "" is the path itself.
func edit(pattern string, change func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		found, err := filepath.Glob(filepath.Join(path, pattern))
		require.NoError(t, err)
		require.Len(t, found, 1)
		before, err := os.ReadFile(found[0])
		require.NoError(t, err)
		after := change(bytes.Clone(before))
		require.NotEqual(t, before, after, "nothing was changed")
		require.NoError(t, os.WriteFile(found[0], after, 0o600))
	}
}

func truncate(pattern string, size int) func(*testing.T, string) {
	return edit(pattern, func(data []byte) []byte { return data[:size] })
}

// flip changes one bit in the last text that is there, which is the reply's.
func flip(data []byte) []byte {
	data[len(bytes.TrimRight(data, "\x00"))-1] ^= 1
	return data
}

// snapshot returns the content of every file at a path, and of those beside it.
func snapshot(t *testing.T, path string) map[string]string {
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(filepath.Dir(path), func(file string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var data []byte
			data, err = os.ReadFile(file)
			files[file] = string(data)
		}
		return err
	}))
	return files
}
