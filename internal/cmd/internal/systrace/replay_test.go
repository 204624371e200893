package systrace_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// hexed turns "text" into the form of -xx.
func hexed(line string) string {
	parts := strings.Split(line, `"`)
	for i := 1; i < len(parts); i += 2 {
		var b strings.Builder
		for _, c := range []byte(parts[i]) {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
		parts[i] = b.String()
	}
	return strings.Join(parts, `"`)
}

func replayed(t *testing.T, calls ...string) *systrace.Disk {
	t.Helper()
	replay := systrace.NewReplay("/d")
	for _, s := range parsed(t, trace(calls)) {
		require.NoError(t, replay.Apply(s))
	}
	return replay.Disk()
}

// trace makes lines of calls; a thread other than 1 is named in front.
func trace(calls []string) string {
	var b strings.Builder
	for _, c := range calls {
		if !strings.HasPrefix(c, "2 ") {
			c = "1 " + c
		}
		b.WriteString(hexed(c) + "\n")
	}
	return b.String()
}

// all is the fate of n changes that reached the disk.
func all(n int) []systrace.Fate { return slices.Repeat([]systrace.Fate{{Kept: true}}, n) }

func contents(i systrace.Image) map[string]string {
	out := map[string]string{}
	for path, entry := range i {
		out[path] = string(entry.Data)
		if entry.Folder {
			out[path] = "/"
		}
	}
	return out
}

const (
	makeA   = `openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 5`
	openD   = `openat(AT_FDCWD, "/d", O_RDONLY|O_CLOEXEC) = 6`
	syncD   = `fsync(6) = 0`
	syncA   = `fsync(5) = 0`
	writeHi = `write(5, "hi", 2) = 2`
)

type content = map[string]string

func TestDisk(t *testing.T) {
	durable := []string{makeA, openD, writeHi, syncA, syncD}
	after := func(calls ...string) []string { return slices.Concat(durable, calls) }
	for name, tt := range map[string]struct {
		calls []string
		// what is there if nothing that was not synced is, and if all is
		synced, all content
	}{
		"a file without any sync":               {[]string{makeA, writeHi}, content{}, content{"a": "hi"}},
		"a synced file whose name is not":       {[]string{makeA, writeHi, syncA}, content{}, content{"a": "hi"}},
		"a synced name of a file that is not":   {[]string{makeA, openD, writeHi, syncD}, content{"a": ""}, content{"a": "hi"}},
		"both synced":                           {durable, content{"a": "hi"}, content{"a": "hi"}},
		"a later write":                         {after(`write(5, "!", 1) = 1`), content{"a": "hi"}, content{"a": "hi!"}},
		"fdatasync":                             {after(`write(5, "!", 1) = 1`, `fdatasync(5) = 0`), content{"a": "hi!"}, content{"a": "hi!"}},
		"a write at an offset":                  {after(`pwrite64(5, "xy", 2, 3) = 2`), content{"a": "hi"}, content{"a": "hi\x00xy"}},
		"a short write":                         {after(`pwrite64(5, "xy", 2, 0) = 1`), content{"a": "hi"}, content{"a": "xi"}},
		"a failed write":                        {after(`pwrite64(5, "xy", 2, 0) = -1 ENOSPC (No space left on device)`), content{"a": "hi"}, content{"a": "hi"}},
		"a truncation":                          {after(`ftruncate(5, 1) = 0`), content{"a": "hi"}, content{"a": "h"}},
		"growth":                                {after(`ftruncate(5, 4) = 0`, syncA), content{"a": "hi\x00\x00"}, content{"a": "hi\x00\x00"}},
		"opened again to be emptied":            {after(`openat(AT_FDCWD, "/d/a", O_WRONLY|O_TRUNC) = 7`), content{"a": "hi"}, content{"a": ""}},
		"appended":                              {after(`openat(AT_FDCWD, "/d/a", O_WRONLY|O_APPEND) = 7`, `write(7, "!", 1) = 1`), content{"a": "hi"}, content{"a": "hi!"}},
		"written where reading ended":           {after(`lseek(5, 0, SEEK_SET) = 0`, `read(5, "h", 1) = 1`, `write(5, "o", 1) = 1`), content{"a": "hi"}, content{"a": "ho"}},
		"one position for two descriptors":      {after(`dup(5) = 8`, `write(8, "!", 1) = 1`, `fcntl(5, F_DUPFD_CLOEXEC, 0) = 9`, `write(9, "?", 1) = 1`), content{"a": "hi"}, content{"a": "hi!?"}},
		"a descriptor's number used again":      {after(`close(5) = 0`, `socket(AF_INET) = 5`, `write(5, "no", 2) = 2`), content{"a": "hi"}, content{"a": "hi"}},
		"renamed":                               {after(`renameat(AT_FDCWD, "/d/a", AT_FDCWD, "/d/b") = 0`), content{"a": "hi"}, content{"b": "hi"}},
		"renamed and synced":                    {after(`renameat(6, "a", 6, "b") = 0`, syncD), content{"b": "hi"}, content{"b": "hi"}},
		"renamed over another":                  {after(`openat(6, "b", O_CREAT|O_RDWR) = 7`, `write(7, "new", 3) = 3`, `fsync(7) = 0`, `renameat(6, "b", 6, "a") = 0`), content{"a": "hi"}, content{"a": "new"}},
		"linked":                                {after(`linkat(AT_FDCWD, "/d/a", AT_FDCWD, "/d/b", 0) = 0`), content{"a": "hi"}, content{"a": "hi", "b": "hi"}},
		"removed":                               {after(`unlinkat(AT_FDCWD, "/d/a", 0) = 0`), content{"a": "hi"}, content{}},
		"removed and synced":                    {after(`unlinkat(AT_FDCWD, "/d/a", 0) = 0`, syncD), content{}, content{}},
		"a removal that failed":                 {after(`unlinkat(AT_FDCWD, "/d/c", 0) = -1 ENOENT (No such file or directory)`), content{"a": "hi"}, content{"a": "hi"}},
		"a folder":                              {after(`mkdirat(AT_FDCWD, "/d/f", 0700) = 0`), content{"a": "hi"}, content{"a": "hi", "f": "/"}},
		"a sync that failed":                    {after(`pwrite64(5, "x", 1, 0) = 1`, `fsync(5) = -1 EIO (Input/output error)`), content{"a": "hi"}, content{"a": "xi"}},
		"a sync after one that failed":          {after(`pwrite64(5, "x", 1, 0) = 1`, `fsync(5) = -1 EIO (Input/output error)`, syncA), content{"a": "hi"}, content{"a": "xi"}},
		"written again after one that failed":   {after(`pwrite64(5, "xyz", 3, 0) = 3`, `fsync(5) = -1 EIO (Input/output error)`, `pwrite64(5, "o", 1, 1) = 1`, syncA), content{"a": "ho"}, content{"a": "xoz"}},
		"cut after a sync that failed":          {after(`pwrite64(5, "xyz", 3, 0) = 3`, `fsync(5) = -1 EIO (Input/output error)`, `ftruncate(5, 1) = 0`, syncA), content{"a": "h"}, content{"a": "x"}},
		"a folder's sync after one that failed": {after(`renameat(6, "a", 6, "b") = 0`, `fsync(6) = -1 EIO (Input/output error)`, syncD), content{"b": "hi"}, content{"b": "hi"}},
		"a faked sync":                          {after(`pwrite64(5, "x", 1, 0) = 1`, `fsync(5) = 0 (INJECTED)`), content{"a": "hi"}, content{"a": "xi"}},
		"a true sync after a faked one":         {after(`pwrite64(5, "x", 1, 0) = 1`, `fsync(5) = 0 (INJECTED)`, syncA), content{"a": "xi"}, content{"a": "xi"}},
		"a sync that has not returned":          {after(`pwrite64(5, "x", 1, 0) = 1`, `fsync(5 <unfinished ...>`), content{"a": "hi"}, content{"a": "xi"}},
		"written while a sync is under way":     {after(`2 fsync(5 <unfinished ...>`, `pwrite64(5, "x", 1, 0) = 1`, `2 <... fsync resumed>) = 0`), content{"a": "hi"}, content{"a": "xi"}},
		"written until a sync is under way":     {after(`pwrite64(5, "x", 1, 0 <unfinished ...>`, `2 fsync(5 <unfinished ...>`, `<... pwrite64 resumed>) = 1`, `2 <... fsync resumed>) = 0`), content{"a": "hi"}, content{"a": "xi"}},
		"closed and made again by two threads":  {after(`close(5 <unfinished ...>`, `2 openat(6, "b", O_CREAT|O_RDWR) = 5`, `<... close resumed>) = 0`, `write(5, "b", 1) = 1`), content{"a": "hi"}, content{"a": "hi", "b": "b"}},
		"a file elsewhere":                      {after(`openat(AT_FDCWD, "/dd/a", O_CREAT|O_RDWR) = 7`, `write(7, "no", 2) = 2`, `fsync(7) = 0`, `renameat(AT_FDCWD, "/dd/a", AT_FDCWD, "/e") = 0`), content{"a": "hi"}, content{"a": "hi"}},
	} {
		t.Run(name, func(t *testing.T) {
			disk := replayed(t, tt.calls...)
			assert.Equal(t, tt.synced, contents(disk.Image(nil)), "synced")
			assert.Equal(t, tt.all, contents(disk.Image(all(len(disk.Pending())))), "all")
		})
	}
}

func TestARenameBetweenFoldersIsWholeAndNeedsBoth(t *testing.T) {
	calls := []string{
		openD, makeA, writeHi, syncA, `mkdirat(6, "f", 0700) = 0`, syncD, `openat(6, "f", O_RDONLY|O_DIRECTORY) = 7`,
		`renameat(6, "a", 7, "b") = 0`,
	}
	before, after := content{"a": "hi", "f": "/"}, content{"f": "/", "f/b": "hi"}
	for _, syncs := range [][]string{nil, {syncD}, {`fsync(7) = 0`}} {
		disk := replayed(t, slices.Concat(calls, syncs)...)
		require.Len(t, disk.Pending(), 1)
		assert.True(t, disk.Pending()[0].IsName())
		assert.Equal(t, before, contents(disk.Image(nil)), syncs)
		assert.Equal(t, after, contents(disk.Image(all(1))), syncs)
	}
	assert.Equal(t, after, contents(replayed(t, slices.Concat(calls, []string{syncD, `fsync(7) = 0`})...).Image(nil)))
}

func TestTornWrites(t *testing.T) {
	disk := replayed(t, openD, makeA, `write(5, "abcdef", 6) = 6`, syncA, syncD, `pwrite64(5, "ABCDEF", 6, 3) = 6`)
	for _, tt := range []struct {
		fate systrace.Fate
		want string
	}{
		{systrace.Fate{}, "abcdef"},
		{systrace.Fate{Kept: true}, "abcABCDEF"},
		{systrace.Fate{Kept: true, Torn: true, Keep: 2}, "abcABf"},
		{systrace.Fate{Kept: true, Torn: true, Keep: 4}, "abcABCD"},
		{systrace.Fate{Kept: true, Torn: true, Keep: 0}, "abcdef"},
		{systrace.Fate{Kept: true, Torn: true, Keep: 0, Long: true}, "abcdef\x00\x00\x00"},
		{systrace.Fate{Kept: true, Torn: true, Keep: 2, Long: true}, "abcABf\x00\x00\x00"},
		{systrace.Fate{Kept: true, Torn: true, Keep: 4, Long: true}, "abcABCD\x00\x00"},
	} {
		assert.Equal(t, tt.want, string(disk.Image([]systrace.Fate{tt.fate})["a"].Data), "%+v", tt.fate)
	}
}

func TestImagesAreToldApart(t *testing.T) {
	images := []systrace.Image{
		{}, {"a": {}}, {"a": {Folder: true}}, {"a": {Data: []byte("b")}}, {"ab": {}}, {"a": {}, "b": {}}, {"a": {Data: []byte("b")}, "b": {}},
	}
	sums := map[[32]byte]bool{}
	for _, i := range images {
		sums[i.Sum()] = true
		assert.Equal(t, i.Sum(), maps.Clone(i).Sum())
	}
	assert.Len(t, sums, len(images))
}

func TestReplayRefusesWhatTheModelDoesNotKnow(t *testing.T) {
	for _, call := range []string{
		`openat(AT_FDCWD, "/d/b", O_RDWR|O_CREAT|O_SYNC, 0600) = 7`,
		`openat(AT_FDCWD, "/d", O_RDWR|O_TMPFILE, 0600) = 7`,
		`openat(AT_FDCWD, "/d/never-made", O_RDWR) = 7`,
		`openat(AT_FDCWD, "/d/f/b", O_RDWR|O_CREAT, 0600) = 7`,
		`openat(AT_FDCWD, "d/a", O_RDWR) = 7`,
		`mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 5, 0) = 0x7f0000000000`,
		`writev(5, [{iov_base="a", iov_len=1}], 1) = 1`,
		`pwritev2(5, [{iov_base="a", iov_len=1}], 1, 0, RWF_DSYNC) = 1`,
		`fallocate(5, 0, 0, 4096) = 0`,
		`copy_file_range(7, NULL, 5, NULL, 10, 0) = 10`,
		`symlink("/x", "/d/s") = 0`,
		`truncate("/d/a", 0) = 0`,
		`rename("/d/a", "/d/b") = 0`,
		`renameat(AT_FDCWD, "/d/a", AT_FDCWD, "/elsewhere") = 0`,
		`renameat(AT_FDCWD, "/elsewhere", AT_FDCWD, "/d/a") = 0`,
		`renameat(AT_FDCWD, "/d", AT_FDCWD, "/d/f") = 0`,
		`unlinkat(AT_FDCWD, "/d", AT_REMOVEDIR) = 0`,
		`renameat2(AT_FDCWD, "/d/a", AT_FDCWD, "/d/b", RENAME_EXCHANGE) = 0`,
	} {
		replay := systrace.NewReplay("/d")
		steps := parsed(t, trace([]string{makeA, call}))
		require.NoError(t, replay.Apply(steps[0]))
		require.NoError(t, replay.Apply(steps[1]))
		require.NoError(t, replay.Apply(steps[2]))
		assert.Error(t, replay.Apply(steps[3]), call)
	}
	replayed(t, makeA,
		`mmap(NULL, 4096, PROT_READ, MAP_SHARED, 5, 0) = 0x7f0000000000`,
		`mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 9, 0) = 0x7f0000000000`,
		`writev(9, [{iov_base="a", iov_len=1}], 1) = 1`,
		`symlink("/x", "/elsewhere") = 0`,
		`fallocate(5, 0, 0, 4096) = -1 ENOSPC (No space left on device)`,
	)
}

// program is what TestMain does in the process that is traced.
func program(folder string) error {
	make := func(path, text string) error {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			return err
		}
		if _, err := file.WriteAt([]byte("0123"), 700); err != nil {
			return err
		}
		return file.Sync()
	}
	in := func(path string) string { return filepath.Join(folder, path) }
	for _, do := range []func() error{
		func() error { return os.Mkdir(in("one"), 0o700) },
		func() error { return os.MkdirAll(in("gone/deep"), 0o700) },
		func() error { return make(in("one/a"), "first") },
		func() error { return make(in("gone/deep/b"), "second") },
		func() error { return os.Link(in("one/a"), in("linked")) },
		func() error { return os.Rename(in("gone/deep/b"), in("b")) },
		func() error { return os.WriteFile(in("b"), []byte("shorter"), 0o600) },
		func() error { return os.RemoveAll(in("gone")) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

const programVariable = "AGENTJOB_SYSTRACE_TEST_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(programVariable); folder != "" {
		if err := program(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestARealProgramsFolderIsRebuilt(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is needed: apt-get install strace")
	}
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	output := filepath.Join(t.TempDir(), "trace")
	self, err := os.Executable()
	require.NoError(t, err)
	args := systrace.Command(output, nil, self)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), programVariable+"="+folder)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))

	file, err := os.Open(output)
	require.NoError(t, err)
	defer file.Close()
	steps, err := systrace.Parse(file)
	require.NoError(t, err)
	replay := systrace.NewReplay(folder)
	for _, s := range steps {
		require.NoError(t, replay.Apply(s))
	}
	disk := replay.Disk()
	assert.Empty(t, disk.Image(nil), "no folder was synced")

	rebuilt := t.TempDir()
	require.NoError(t, disk.Image(all(len(disk.Pending()))).Write(rebuilt))
	said, err = exec.CommandContext(t.Context(), "diff", "-r", folder, rebuilt).CombinedOutput()
	require.NoError(t, err, string(said))
	entries, err := os.ReadDir(rebuilt)
	require.NoError(t, err)
	assert.Len(t, entries, 3, "b, linked and one")
}
