package systrace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// recorded has the forms of line that strace 6.1 wrote of a Go program, with other names and texts.
const recorded = `3719  mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f30aea4b000
3719  openat(AT_FDCWD, "\x2f\x64\x2f\x61", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 5
3719  fcntl(5, F_GETFL)                 = 0x8002 (flags O_RDWR|O_LARGEFILE)
3719  write(5, "\x68\x2c\x22\x29\x0a", 5) = 5
3719  read(9, 0x24869ff68224, 10)       = -1 EAGAIN (Resource temporarily unavailable)
--- this line never occurs with -e signal=none, but others do
3719  --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=3719, si_uid=0} ---
3719  pwrite64(5, "\x00\xff"..., 4096, 8192) = -1 ENOSPC (No space left on device)
3719  fsync(5 <unfinished ...>
3721  read(9,  <unfinished ...>
3719  <... fsync resumed>)              = 0 (INJECTED)
3721  <... read resumed>"\x50\x4f", 10) = 2
3722  writev(7, [{iov_base="\x61", iov_len=1}, {iov_base="\x62", iov_len=1}], 2) = 2
3723  fdatasync(5)                      = -1 EIO (Input/output error) (INJECTED)
3721  read(9,  <unfinished ...>
3719  close(5 <unfinished ...>
3721  <... read resumed> <unfinished ...>) = ?
3719  +++ exited with 0 +++
`

func parsed(t *testing.T, text string) []systrace.Step {
	t.Helper()
	steps, err := systrace.Parse(strings.NewReader(text))
	require.NoError(t, err)
	return steps
}

func TestParse(t *testing.T) {
	steps := parsed(t, strings.Replace(recorded, "--- this line never occurs with -e signal=none, but others do\n", "", 1))
	var lines []string
	for _, s := range steps {
		at := " begins"
		if s.End {
			at = " ends"
		}
		lines = append(lines, s.Call.String()+at)
	}
	both := func(call string) []string { return []string{call + " begins", call + " ends"} }
	var want []string
	for _, call := range []string{"mmap at line 1", "openat at line 2", "fcntl at line 3", "write at line 4", "read at line 5", "pwrite64 at line 7"} {
		want = append(want, both(call)...)
	}
	want = append(want, "fsync at line 8 begins", "read at line 9 begins", "fsync at line 8 ends", "read at line 9 ends")
	want = append(want, both("writev at line 12")...)
	want = append(want, both("fdatasync at line 13")...)
	want = append(want, "read at line 14 begins", "close at line 15 begins")
	require.Equal(t, want, lines)
	assert.Equal(t, 10, steps[14].Line, "a call ends at the line that resumes it")

	call := func(step int) *systrace.Call { return steps[step].Call }
	assert.Equal(t, int64(0x7f30aea4b000), call(0).Ret)
	text, err := call(2).Bytes(1)
	require.NoError(t, err)
	assert.Equal(t, "/d/a", string(text))
	assert.True(t, call(2).Has(2, "O_EXCL", "O_CREAT"))
	assert.False(t, call(2).Has(2, "O_CREA"))
	assert.Equal(t, int64(0x8002), call(4).Ret)
	text, err = call(6).Bytes(1)
	require.NoError(t, err)
	assert.Equal(t, "h,\")\n", string(text), "text may hold what separates")

	assert.Equal(t, "EAGAIN", call(8).Errno)
	_, err = call(10).Bytes(1)
	require.ErrorContains(t, err, "cut it off")
	require.ErrorContains(t, err, "pwrite64 at line 7")
	assert.Equal(t, "ENOSPC", call(10).Errno)
	size, err := call(10).Int(3)
	require.NoError(t, err)
	assert.Equal(t, int64(8192), size)
	_, err = call(10).Int(1)
	require.ErrorContains(t, err, "not a number")
	_, err = call(10).Int(4)
	require.Error(t, err, "there is none")

	fsync, resumed := steps[12].Call, steps[13].Call
	assert.True(t, fsync.Injected && fsync.Returned)
	assert.False(t, fsync.OK(), "what strace made up was not done")
	text, err = resumed.Bytes(1)
	require.NoError(t, err)
	assert.Equal(t, "PO", string(text), "arguments that are known at the end only")
	assert.Equal(t, []string{"7", `[{iov_base="\x61", iov_len=1}, {iov_base="\x62", iov_len=1}]`, "2"}, call(16).Args)
	assert.Equal(t, "EIO", call(18).Errno)
	assert.False(t, call(20).Returned, "the program ended in it")
	assert.False(t, call(21).Returned, "the trace ends in it")
	assert.Equal(t, []string{"5"}, call(21).Args)
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	for text, want := range map[string]string{
		"strace: Process 7 attached\n":  "does not begin with a thread",
		"7  close 5\n":                  "it is no call",
		"7  close(5)\n":                 "has no result",
		"7  close(5) = \n":              "has no result",
		"7  close(5) = ok\n":            `the result "ok"`,
		"7  <... close resumed>) = 0\n": "had not begun",
		"7  close(5 <unfinished ...>\n7  <... fsync resumed>": "line 2: it resumes a call that had not begun",
		"7  close(5 <unfinished ...>\n8  <... close resumed>": "had not begun",
	} {
		_, err := systrace.Parse(strings.NewReader(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestTextInAnotherFormIsNoGuess(t *testing.T) {
	for _, text := range []string{`"abc"`, `"\x6"`, `"\xzz"`, `NULL`, `"`, `"\x61\61\x"`} {
		_, err := parsed(t, "7  write(1, "+text+", 1) = 1\n")[0].Call.Bytes(1)
		assert.ErrorContains(t, err, "-xx", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(recorded)
	f.Add("7  close(5 <unfinished ...>\n7  <... close resumed>) = 0\n")
	f.Add("7  (")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := systrace.Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		replay := systrace.NewReplay("/d")
		for _, s := range steps {
			if replay.Apply(s) != nil { // it may refuse, and must not panic
				return
			}
		}
	})
}
