package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// binary is the real program, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	folder, err := os.MkdirTemp("", "quickstart-test-*")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // a leftover of a test is no failure
	binary = filepath.Join(folder, "quickstart.exe")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		panic("build the quickstart: " + err.Error() + "\n" + string(out))
	}
	return m.Run()
}

// quickstart runs the program to its end, and checks that no output has a key and that
// standard error has nothing of the chats.
func quickstart(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		require.NoError(t, err)
	}
	require.NoError(t, ctx.Err(), "it did not end by itself\n%s%s", &out, &errs)
	discreet(t, out.String(), errs.String())
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func discreet(t *testing.T, stdout, stderr string) {
	t.Helper()
	assert.NotContains(t, stdout+stderr, "ak_", "a provider key")
	for _, text := range []string{"milk", "bread", "On your list", "think 1h"} {
		assert.NotContains(t, stderr, text, "chat text")
	}
}

func TestEndsByItself(t *testing.T) {
	stdout, stderr, code := quickstart(t)
	assert.Equal(t, 0, code, "%s%s", stdout, stderr)
	assert.True(t, strings.HasSuffix(stdout, "\ndone: 5 replies delivered to 2 customers, 0 lost, 0 duplicated\n"), stdout)
	assert.Empty(t, stderr)
}

func TestCrashes(t *testing.T) {
	stdout, stderr, code := quickstart(t, "--crash")
	assert.Equal(t, 0, code, "%s%s", stdout, stderr)
	assert.True(t, strings.HasSuffix(stdout, "\ndone: 7 replies delivered to 3 customers, 0 lost, 0 duplicated, 1 interrupted\n"), stdout)
}

func TestSecondRunFindsTheFirst(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	first, stderr, code := quickstart(t, "--state", state)
	require.Equal(t, 0, code, stderr)
	assert.Contains(t, first, "provider  registered")
	assert.NotContains(t, first, "provider  found")

	second, stderr, code := quickstart(t, "--state", state)
	require.Equal(t, 0, code, stderr)
	assert.Contains(t, second, "provider  found       the registration of agent ")
	assert.Contains(t, second, "provider  found       records of an earlier run: 5 delivered\n")
	assert.NotContains(t, second, "registered")
	assert.Contains(t, second, "done: 5 replies delivered to 2 customers, 0 lost, 0 duplicated\n")
}

func TestUnusableState(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(open, 0o755))
	require.NoError(t, os.Chmod(open, 0o755)) // whatever the umask

	for name, c := range map[string]struct{ state, says string }{
		"below a file":       {filepath.Join(file, "state"), "not a directory"},
		"readable by others": {open, "chmod"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := quickstart(t, "--state", c.state)
			assert.Equal(t, 1, code, stdout)
			assert.Contains(t, stderr, c.says)
			assert.Contains(t, stderr, c.state)
			assert.NotContains(t, stdout, "registered")
		})
	}
	left, err := os.ReadDir(open)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is written into a folder that others can read")
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"--platform", "http://127.0.0.1:1"}, {"--platform", "x", "--state", "y", "--keep"}} {
		_, stderr, code := quickstart(t, args...)
		assert.Equal(t, 2, code, args)
		assert.Contains(t, stderr, "--platform needs --state", args)
	}
}

// TestKeepSurvivesAKill kills the provider of --keep from outside, as a user would.
func TestKeepSurvivesAKill(t *testing.T) {
	p := start(t, "--keep")
	pid := p.awaitLine("parent    started     the provider, process ")
	p.awaitLine("parent    keeps on")
	process := pidOf(t, pid)
	require.NoError(t, process.Kill())
	p.awaitLine("parent    sees")
	p.awaitLine("provider  found       the registration")
	p.awaitLine("Ada       hears")
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 0, p.wait())
	assert.Contains(t, p.stdout(), " 0 lost, 0 duplicated")
}
