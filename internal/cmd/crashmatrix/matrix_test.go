package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentjob/agentjob-go/agentjob"
)

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(ordersVariable); ok {
		os.Exit(provide(text, os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// command runs the command, and returns what it left in the folder of states.
func command(t *testing.T, ctx context.Context, out *lines, args ...string) (code int, stderr string, left []os.DirEntry) {
	t.Helper()
	dir := t.TempDir()
	var errs bytes.Buffer
	code = run(ctx, append([]string{"-dir", dir}, args...), rows(), out, &errs)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	return code, errs.String(), left
}

// lines gathers output and calls a function at each write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	each func(text string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.each != nil {
		l.each(string(p))
	}
	return len(p), nil
}

// A part of the matrix with few runs; the whole is the command.
func TestPromisesAreKept(t *testing.T) {
	part := "^(" + strings.Join([]string{
		"kill: (during open store|after bind provider|before put claimed|during put claimed|after put claimed|handler works|during put saved|after put saved|after POST response|after put ended)",
		"kill: (after put claimed, then after put ended|drained, after close lease|asked to drain.*|between two.*|before delete)",
		"kill, no idempotency: (before POST response|after POST response|after the next task's put claimed)",
		"resume: handler works, then resume works",
		"fault: (cut after on GET tasks|truncated on POST response)",
		"fault and kill: 503 on POST response",
		"two workers: the first is killed.*",
		"pause: (handler works|over a poll that hands out a task)",
		"clock: the platform's 3 days forward (after a crash with a saved reply)",
		"clock: the provider's 3 days forward (after a crash with a claimed task)",
	}, "|") + ")$"
	for name := range stores {
		t.Run(name, func(t *testing.T) {
			out := &lines{}
			code, errs, left := command(t, t.Context(), out, "-runs", "2", "-store", name, "-only", part)
			require.Zero(t, code, "%s\n%s", out.text.String(), errs)
			assert.True(t, strings.HasSuffix(out.text.String(), "\nlost=0 duplicated=0 regenerated=0\n"), out.text.String())
			assert.Contains(t, out.text.String(), "Without response idempotency: ")
			assert.Empty(t, left)
			t.Log("\n" + out.text.String())
		})
	}
}

// A worker that is broken on purpose: the store says yes and writes nothing.
func TestBrokenWorkersAreNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		row      string
		sabotage agentjob.State
		counts   [3]int // lost, duplicated, regenerated
	}{
		"a reply is not saved":   {"kill: after put saved", agentjob.StateSaved, [3]int{1, 0, 0}},
		"a claim is not saved":   {"kill: handler works", agentjob.StateClaimed, [3]int{0, 0, 1}},
		"an end is not saved":    {"kill: after the next task's put claimed", agentjob.StateEnded, [3]int{0, 0, 0}},
		"an end, no idempotency": {"kill, no idempotency: after the next task's put claimed", agentjob.StateEnded, [3]int{0, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := playOnce(t, c.row, func(m *matrix) { m.sabotage = c.sabotage })
			assert.False(t, got.ok())
			assert.Equal(t, c.counts, [3]int{got.lost, got.duplicated, got.regenerated}, strings.Join(got.problems, "\n"))
		})
	}
}

// A platform that takes a repeat as a second message, in a row which says that it does not.
func TestBrokenPlatformIsNoticed(t *testing.T) {
	got := playOnce(t, "kill: after POST response", func(m *matrix) { m.unforgiving = true })
	assert.False(t, got.ok())
	assert.Equal(t, 1, got.duplicated, strings.Join(got.problems, "\n"))
}

// playOnce runs one row once.
func playOnce(t *testing.T, name string, change func(*matrix)) *tally {
	t.Helper()
	m := &matrix{runs: 1, parallel: 1, store: "bolt", dir: t.TempDir()}
	change(m)
	var out bytes.Buffer
	all, err := m.run(t.Context(), []row{rowNamed(t, name)}, &out, &out)
	require.NoError(t, err, out.String())
	return all[0]
}

// Every point of a whole life is killed at, before and after.
func TestNoPointIsMissing(t *testing.T) {
	killed := map[string]bool{}
	for _, r := range rows() {
		if name, ok := strings.CutPrefix(r.name, "kill: "); ok {
			killed[strings.TrimPrefix(name, "drained, ")] = true
		}
		if name, ok := strings.CutPrefix(r.name, "resume: handler works, then "); ok {
			killed[name] = true
		}
	}
	points := map[string]bool{}
	for _, name := range []string{"kill: after put saved", "kill: before delete", "resume: handler works, then resume works"} {
		r := rowNamed(t, name)
		r.check = func(w *world, _ map[string]agentjob.Record) error {
			for _, l := range w.lines() {
				if l.verb == "moment" && !strings.HasPrefix(l.subject, "failed ") {
					points[l.subject] = true
				}
			}
			return nil
		}
		m := &matrix{runs: 1, parallel: 1, store: "bolt", dir: t.TempDir()}
		o := m.play(t.Context(), r)
		require.Empty(t, o.problems)
	}
	require.Contains(t, points, "after put ended")
	require.Contains(t, points, "before delete")
	for p := range points {
		// A resumption passes the same points as a first run, but for its own.
		if p != "resume starts" && p != "resume is done" {
			assert.True(t, killed[p], "no row kills at %q", p)
		}
	}
}

func rowNamed(t *testing.T, name string) row {
	t.Helper()
	for _, r := range rows() {
		if r.name == name {
			return r
		}
	}
	require.Fail(t, "there is no row "+name)
	return row{}
}

func TestNamesOfRowsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		assert.False(t, seen[r.name], r.name)
		seen[r.name] = true
	}
}

// A moment that does not come is no success.
func TestAMomentThatDoesNotComeIsAProblem(t *testing.T) {
	m := &matrix{runs: 1, parallel: 1, store: "bolt", dir: t.TempDir()}
	o := m.play(t.Context(), row{play: func(ctx context.Context, w *world) error {
		if _, err := w.ask(delivered); err != nil {
			return err
		}
		c, err := w.start(ctx, moment{Name: "after the end of the world", Do: die})
		if err != nil {
			return err
		}
		c.drain()
		return c.died(ctx, "after the end of the world")
	}})
	require.NotEmpty(t, o.problems)
	assert.Contains(t, o.problems[0], "ended with code 0 before \"after the end of the world\" came")
}

func TestInterruptLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{each: func(text string) {
		if strings.HasPrefix(text, "kill: ") { // a row is done, others are at work
			cancel()
		}
	}}
	code, errs, left := command(t, ctx, out, "-runs", "3", "-only", "^kill: (before|after)")
	assert.Equal(t, exitBroken, code)
	assert.Contains(t, errs, "the table is not complete: context canceled")
	assert.NotContains(t, out.text.String(), "lost=")
	assert.Empty(t, left)
	// Children that are left would be goroutines of os/exec, which goleak finds.
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"help":           {[]string{"-h"}, exitKept, "lost=0 duplicated=0 regenerated=0"},
		"unknown flag":   {[]string{"-what"}, exitUsage, "flag provided but not defined"},
		"argument":       {[]string{"what"}, exitUsage, `what is "what"?`},
		"no runs":        {[]string{"-runs", "0"}, exitUsage, "take 1 or more"},
		"no rows":        {[]string{"-only", "nothing like this"}, exitUsage, "no row matches"},
		"bad expression": {[]string{"-only", "("}, exitUsage, "-only: "},
		"unknown store":  {[]string{"-store", "tape"}, exitUsage, "-store takes bolt"},
		"list":           {[]string{"-list", "-only", "^kill: after put saved$"}, exitKept, ""},
		"no such -dir":   {[]string{"-dir", "/nowhere/to/be/found", "-only", "^kill: after put saved$"}, exitBroken, "not complete"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			assert.Equal(t, c.code, run(t.Context(), c.args, rows(), &out, &errs))
			assert.Contains(t, errs.String(), c.says)
			if name == "list" {
				assert.Equal(t, "kill: after put saved\n", out.String())
			}
		})
	}
}

func TestBrokenWorkerIsNotWaitedForInEveryRow(t *testing.T) {
	never := row{name: "never", play: func(context.Context, *world) error { return errors.New("it never came there") }}
	m := &matrix{runs: 1, parallel: 2, store: "bolt", dir: t.TempDir()}
	all, err := m.run(t.Context(), slices.Repeat([]row{never}, 2*maxBad), io.Discard, io.Discard)
	require.ErrorContains(t, err, "10 rows are not ok")
	require.Len(t, all, maxBad)
}
