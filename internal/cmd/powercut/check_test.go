package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func needStrace(t *testing.T) {
	t.Helper()
	if err := straceMissing(); err != nil {
		t.Skip(err)
	}
	if said, err := exec.CommandContext(t.Context(), "strace", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here, allow ptrace: %v: %s", err, said)
	}
}

// The command looks at more tasks and states.
var few = options{tasks: 8, states: 250, seed: 7}

func byName(t *testing.T, rows []row) map[string]tally {
	t.Helper()
	names := map[string]tally{}
	for _, r := range rows {
		names[r.name] = r.tally
	}
	require.Len(t, names, len(variants)+2)
	return names
}

func TestStoresLoseNothingInAPowerCut(t *testing.T) {
	needStrace(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rows, err := check(t.Context(), k, few)
			require.NoError(t, err)
			states := 0
			for _, r := range rows {
				assert.Zero(t, r.bad(), "%s: %s", r.name, strings.Join(r.texts, "\n"))
				if r.name != "torn" { // few records of the file store are larger than a sector
					assert.NotZero(t, r.states, r.name)
				}
				states += r.states
			}
			names := byName(t, rows)
			assert.GreaterOrEqual(t, states-names["order"].states-names["restart"].states, few.states*9/10)
		})
	}
}

// A sync of each thread fails once, at different moments of a transaction. What bbolt wrote before it, and
// takes for committed from then on, must be on disk before anything is built on it.
func TestAFailedSyncLosesNothing(t *testing.T) {
	needStrace(t)
	judged := 0
	for when := 6; when <= 11; when++ {
		failing := few
		failing.states = 400
		failing.faults = []string{fmt.Sprintf("fdatasync:error=EIO:when=%d", when)}
		rows, err := check(t.Context(), kinds[0], failing)
		if err != nil {
			require.ErrorContains(t, err, "input/output error") // it hit the start or the end of the provider, which says so and stops
			continue
		}
		judged++
		for _, r := range rows {
			assert.Zero(t, r.bad(), "%d: %s: %s", when, r.name, strings.Join(r.texts, "\n"))
		}
	}
	assert.GreaterOrEqual(t, judged, 2, "the provider never went on")
}

// strace makes every sync a lie: it returns 0 and does nothing.
func TestFakedSyncsAreFound(t *testing.T) {
	needStrace(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			faked := few
			faked.faults = []string{"fsync:retval=0", "fdatasync:retval=0"}
			rows, err := check(t.Context(), k, faked)
			require.NoError(t, err)
			names := byName(t, rows)
			order := names["order"]
			assert.Equal(t, order.states, order.early, "no start and no reply was in order")
			assert.Len(t, order.texts, order.early)
			synced := names["synced"]
			assert.NotZero(t, synced.lost)
			assert.NotZero(t, synced.rerun)
			assert.NotZero(t, synced.early)
			assert.NotZero(t, names["restart"].rerun, "the restarted worker ran what had run")
			assert.Zero(t, names["all"].bad(), "and a kill would have shown nothing: %s", strings.Join(names["all"].texts, "\n"))
		})
	}
}

func TestCommand(t *testing.T) {
	needStrace(t)
	for _, tt := range []struct {
		args string
		exit int
	}{
		{"-store bolt -tasks 2 -states 1", 0},
		{"-store bolt -tasks 2 -states 1 -inject fsync:retval=0 -inject fdatasync:retval=0", 1},
		{"-store bolt -tasks 2 -states 1 -inject mkdirat:error=ENOSPC", 2},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, tt.exit, run(t.Context(), strings.Fields(tt.args), &stdout, &stderr), "%s\n%s", tt.args, &stderr)
		assert.Equal(t, tt.exit == 0, stderr.Len() == 0, "%s\n%s", tt.args, &stderr)
		if tt.exit < 2 {
			assert.Regexp(t, `^states=\d+ lost=\d+ rerun=\d+ early=\d+ unopenable=\d+$`, last(stdout.String()))
			assert.Equal(t, tt.exit == 0, strings.HasSuffix(last(stdout.String()), " lost=0 rerun=0 early=0 unopenable=0"))
		}
	}
}
