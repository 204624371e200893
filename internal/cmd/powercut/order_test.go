package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// steps makes a trace of calls, of which text in quotes is given as it is.
func steps(t *testing.T, calls ...string) []systrace.Step {
	t.Helper()
	var trace strings.Builder
	for _, call := range calls {
		trace.WriteString("1 ")
		for i, part := range strings.Split(call, "'") {
			if i%2 == 0 {
				trace.WriteString(part)
				continue
			}
			trace.WriteString(`"`)
			for _, c := range []byte(part) {
				fmt.Fprintf(&trace, `\x%02x`, c)
			}
			trace.WriteString(`"`)
		}
		trace.WriteString("\n")
	}
	steps, err := systrace.Parse(strings.NewReader(trace.String()))
	require.NoError(t, err)
	return steps
}

func write(fd int, text string) string {
	return fmt.Sprintf("write(%d, '%s', %d) = %d", fd, text, len(text), len(text))
}

func TestOrder(t *testing.T) {
	const (
		open    = `openat(AT_FDCWD, '/d/a', O_RDWR|O_CREAT, 0600) = 5`
		folder  = `openat(AT_FDCWD, '/d', O_RDONLY) = 6`
		sync    = `fdatasync(5) = 0`
		syncDir = `fsync(6) = 0`
		post    = "POST /api/agents/tasks/t1/response HTTP/1.1\r\nHost: x\r\n\r\n{}"
	)
	ran, left := write(1, "RUN t1\n"), write(9, post)
	record := func(id, state string) string {
		return write(5, `{"format":1,"provider":"p","taskId":"`+id+`","chatId":"c","state":"`+state+`"}`)
	}
	made := []string{folder, open, syncDir}
	for _, tt := range []struct {
		calls []string
		want  string
	}{
		{slices.Concat(made, []string{record("t1", "claimed"), sync, ran}), ""},
		{slices.Concat(made, []string{record("t1", "saved"), sync, ran, left}), ""},
		{slices.Concat(made, []string{record("t1", "ended"), sync, left}), ""},
		{slices.Concat(made, []string{record("t1", "claimed"), ran, sync}), "task t1: its handler started (line 5 of the trace) before its claimed record was on disk: no sync has made durable what write at line 4 wrote"},
		{slices.Concat(made, []string{record("t1", "saved"), left}), "its reply left (line 5 of the trace) before its saved record was on disk: no sync has made durable what write at line 4 wrote"},
		{slices.Concat(made, []string{record("t1", "saved"), `fdatasync(5) = -1 EIO (Input/output error)`, left}), "what write at line 4 wrote"},
		{slices.Concat(made, []string{record("t1", "saved"), `fdatasync(5) = 0 (INJECTED)`, left}), "what write at line 4 wrote"},
		{slices.Concat(made, []string{record("t1", "claimed"), sync, left}), "nothing has written it"},
		{slices.Concat(made, []string{record("t2", "saved"), record("t11", "saved"), sync, left}), "nothing has written it"},
		{[]string{open, folder, record("t1", "claimed"), sync, ran}, "into a file whose name no sync of its folder has made durable since openat at line 1"},
	} {
		r := &recording{folder: "/d", steps: steps(t, tt.calls...)}
		var err error
		r.marks, err = marksIn(r.steps)
		require.NoError(t, err)
		require.NotEmpty(t, r.marks)
		var texts []string
		require.NoError(t, r.moments(func(m moment) error {
			if m.mark != nil {
				if text := early(*m.mark, m.disk); text != "" {
					texts = append(texts, text)
				}
			}
			return nil
		}))
		if tt.want == "" {
			assert.Empty(t, texts)
			continue
		}
		require.Len(t, texts, 1, tt.want)
		assert.Contains(t, texts[0], tt.want)
	}
}

func TestMarks(t *testing.T) {
	marks, err := marksIn(steps(t,
		write(1, "BOUND print\n"), write(1, "CLAIMED a\n"), write(1, "RUN a\n"), write(1, "SAVED a\n"), write(1, "END a\n"),
		write(2, "RUN b\n"),
		write(7, "GET /api/agents/tasks?wait=25 HTTP/1.1\r\n"), write(7, "POST /api/agents/tasks/a%2Fb/response HTTP/1.1\r\nHost: x"),
		write(7, "POST /api/agents/tasks/a/progress HTTP/1.1\r\n"), `pwrite64(5, 'RUN c', 6, 0) = 6`,
	))
	require.NoError(t, err)
	var got []string
	for _, m := range marks {
		got = append(got, fmt.Sprint(m.line, " ", m))
	}
	assert.Equal(t, []string{"1 bound print", "2 claimed a", "3 run a", "4 saved a", "8 send a/b"}, got)
}
