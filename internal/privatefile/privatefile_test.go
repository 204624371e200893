package privatefile_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/internal/privatefile"
)

func skipOnWindows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
}

// onlyFile asserts that a folder holds one file and no temporary one.
func onlyFile(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, name, entries[0].Name())
}

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first, longer", "second", ""} {
		require.NoError(t, privatefile.WriteFile(path, []byte(text)))
		got, err := privatefile.ReadFile(path, 100)
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
		onlyFile(t, dir, "file")
	}
}

func TestFilesAreMadePrivate(t *testing.T) {
	skipOnWindows(t)
	dir := t.TempDir()
	for name, write := range map[string]func(string, []byte) error{"written": privatefile.WriteFile, "created": privatefile.Create} {
		path := filepath.Join(dir, name)
		require.NoError(t, write(path, []byte("x")))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), info.Mode())
	}
	// Replacing a file that others could read makes it private.
	path := filepath.Join(dir, "written")
	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, privatefile.WriteFile(path, []byte("y")))
	require.NoError(t, privatefile.Check(path))
}

func TestWriteFileReplacesALink(t *testing.T) {
	skipOnWindows(t)
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(target, []byte("theirs"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, privatefile.WriteFile(link, []byte("ours")))
	got, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "theirs", string(got))
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a-folder")
	require.NoError(t, os.Mkdir(path, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, "in it"), nil, 0o600))
	for name, write := range map[string]func(string, []byte) error{"WriteFile": privatefile.WriteFile, "Create": privatefile.Create} {
		err := write(path, []byte("x"))
		require.Error(t, err, name)
		require.ErrorContains(t, err, path, name)
		onlyFile(t, dir, "a-folder")
		require.ErrorIs(t, write(filepath.Join(dir, "missing", "file"), nil), fs.ErrNotExist)
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, privatefile.Create(path, []byte("first")))
	require.ErrorIs(t, privatefile.Create(path, []byte("second")), fs.ErrExist)
	got, err := privatefile.ReadFile(path, 100)
	require.NoError(t, err)
	assert.Equal(t, "first", string(got))
	onlyFile(t, dir, "file")
}

func TestOneOfManyCreatesWinsAndIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	path := filepath.Join(dir, "file")
	var all sync.WaitGroup
	won := make(chan []byte, 32)
	for i := range 32 {
		all.Go(func() {
			if !assert.NoError(t, privatefile.EnsureDir(dir)) {
				return
			}
			data := bytes.Repeat(fmt.Append(nil, i%10), 10_000)
			switch err := privatefile.Create(path, data); err {
			case nil:
				won <- data
			default:
				assert.ErrorIs(t, err, fs.ErrExist)
				got, err := privatefile.ReadFile(path, 1<<20)
				assert.NoError(t, err)
				assert.Len(t, got, 10_000, "the loser sees a whole file")
			}
		})
	}
	all.Wait()
	require.Len(t, won, 1)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, <-won, got)
	onlyFile(t, dir, "file")
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	_, err := privatefile.ReadFile(path, 10)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, privatefile.WriteFile(path, []byte("0123456789")))
	got, err := privatefile.ReadFile(path, 10)
	require.NoError(t, err)
	assert.Equal(t, "0123456789", string(got))
	_, err = privatefile.ReadFile(path, 9)
	require.ErrorContains(t, err, "larger than 9 bytes")

	_, err = privatefile.ReadFile(dir, 10)
	require.Error(t, err)
	if runtime.GOOS != "windows" {
		_, err = privatefile.ReadFile(os.DevNull, 10)
		require.ErrorContains(t, err, "neither a file nor a folder")
	}
}

func TestEveryBitForOthersIsRefusedWithTheFix(t *testing.T) {
	skipOnWindows(t)
	dir := filepath.Join(t.TempDir(), "folder")
	path := filepath.Join(dir, "file")
	require.NoError(t, privatefile.EnsureDir(dir))
	require.NoError(t, privatefile.WriteFile(path, nil))
	for _, bit := range []fs.FileMode{0o040, 0o020, 0o010, 0o004, 0o002, 0o001} {
		require.NoError(t, os.Chmod(path, 0o600|bit))
		_, err := privatefile.ReadFile(path, 10)
		require.ErrorIs(t, err, privatefile.ErrNotPrivate)
		require.ErrorContains(t, err, fmt.Sprintf("mode %04o", 0o600|bit))
		require.ErrorContains(t, err, "run: chmod 600 "+path)

		require.NoError(t, os.Chmod(dir, 0o700|bit))
		err = privatefile.EnsureDir(dir)
		require.ErrorIs(t, err, privatefile.ErrNotPrivate)
		require.ErrorContains(t, err, "run: chmod 700 "+dir)
		require.NoError(t, os.Chmod(dir, 0o700))
	}
	require.NoError(t, os.Chmod(path, 0o400))
	_, err := privatefile.ReadFile(path, 10)
	require.NoError(t, err)
}

func TestEnsureDir(t *testing.T) {
	top := filepath.Join(t.TempDir(), "a")
	path := filepath.Join(top, "b", "c")
	for range 2 {
		require.NoError(t, privatefile.EnsureDir(path))
	}
	for _, dir := range []string{top, filepath.Dir(path), path} {
		require.NoError(t, privatefile.Check(dir))
	}
	t.Chdir(top)
	require.NoError(t, privatefile.EnsureDir(filepath.Join("relative", "x")))
	require.DirExists(t, filepath.Join(top, "relative", "x"))
	require.NoError(t, privatefile.EnsureDir("."))

	file := filepath.Join(top, "file")
	require.NoError(t, privatefile.WriteFile(file, nil))
	require.ErrorContains(t, privatefile.EnsureDir(file), "is not a folder")
	err := privatefile.EnsureDir(filepath.Join(file, "below"))
	require.ErrorContains(t, err, filepath.Join(file, "below"))
	require.ErrorContains(t, err, "choose a place where this user may write")
}

func TestEnsureDirAcceptsASharedParent(t *testing.T) {
	skipOnWindows(t)
	parent := filepath.Join(t.TempDir(), "shared")
	require.NoError(t, os.Mkdir(parent, 0o700))
	require.NoError(t, os.Chmod(parent, 0o755))
	require.NoError(t, privatefile.EnsureDir(filepath.Join(parent, "private")))
}

func TestLeftoversOfACrashAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	require.NoError(t, privatefile.EnsureDir(dir))
	require.NoError(t, privatefile.WriteFile(filepath.Join(dir, "file"), []byte("kept")))
	for range 3 { // as WriteFile makes them
		left, err := os.CreateTemp(dir, ".new-*")
		require.NoError(t, err)
		require.NoError(t, left.Close())
	}
	require.NoError(t, privatefile.RemoveLeftovers(dir))
	onlyFile(t, dir, "file")
	require.NoError(t, privatefile.RemoveLeftovers(dir))
	require.ErrorIs(t, privatefile.RemoveLeftovers(filepath.Join(dir, "none")), fs.ErrNotExist)
}
