package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

func TestBoundaries(t *testing.T) {
	for _, tt := range []struct {
		size   int
		offset int64
		first  bool
		want   []int
	}{
		{0, 0, false, nil},
		{0, 0, true, nil},
		{1, 0, false, nil},
		{1, 0, true, []int{0}},
		{512, 0, false, nil},
		{512, 0, true, []int{0}},
		{513, 0, false, []int{512}},
		{1536, 512, false, []int{512, 1024}},
		{100, 500, false, []int{12}},
		{12, 500, false, nil},
		{600, 500, true, []int{0, 12, 524}},
	} {
		assert.Equal(t, tt.want, boundaries(tt.size, tt.offset, tt.first), "%+v", tt)
	}
}

// pending is a small write, a large one and another small one.
func pending(t *testing.T) []*systrace.Op {
	t.Helper()
	replay := systrace.NewReplay("/d")
	text := func(n int) string { return write(5, string(make([]byte, n))) }
	for _, s := range steps(t, `openat(AT_FDCWD, '/d/a', O_RDWR|O_CREAT, 0600) = 5`, text(12), text(4096), text(8)) {
		require.NoError(t, replay.Apply(s))
	}
	return replay.Disk().Pending()
}

func TestVariants(t *testing.T) {
	ops := pending(t)
	require.Len(t, ops, 4)
	kept := map[string]map[int]bool{} // variant: numbers of changes that were kept
	for _, v := range variants {
		kept[v.name] = map[int]bool{}
		for seed := range uint64(200) {
			fates := v.fates(rand.New(rand.NewPCG(seed, 0)), ops)
			require.Len(t, fates, len(ops))
			n := 0
			for i, f := range fates {
				if f.Kept {
					n++
				}
				torn := v.name == "torn" && i == 2 || v.name == "long" && i == 3
				require.Equal(t, torn, f.Torn, "%s %d", v.name, i)
				if v.name == "torn" && f.Torn {
					require.Zero(t, (f.Keep+12)%sector, "between two sectors of the file")
				}
			}
			kept[v.name][n] = true
		}
	}
	assert.Equal(t, map[int]bool{0: true}, kept["synced"])
	assert.Equal(t, map[int]bool{4: true}, kept["all"])
	assert.Equal(t, map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true}, kept["subset"])
	assert.Equal(t, map[int]bool{1: true, 2: true, 3: true, 4: true}, kept["torn"])

	for _, v := range variants {
		fates := v.fates(rand.New(rand.NewPCG(1, 1)), nil)
		assert.Equal(t, v.name == "synced", fates != nil, "nothing is pending: one state")
		one := v.fates(rand.New(rand.NewPCG(1, 1)), ops[:1])
		assert.Equal(t, v.name == "torn" || v.name == "long", one == nil, "no write is pending: nothing to tear")
	}
}

func TestPlanIsTheSeedsAndTakesEveryMark(t *testing.T) {
	r := &recording{folder: "/d", steps: steps(t,
		`openat(AT_FDCWD, '/d/a', O_RDWR|O_CREAT, 0600) = 5`, write(5, "x"), write(1, "RUN a\n"), write(7, "no mark"),
		write(5, "y"), `fsync(5) = 0`, write(1, "RUN b\n"))}
	var err error
	r.marks, err = marksIn(r.steps)
	require.NoError(t, err)
	plan := func(n int, seed uint64) map[state]bool {
		chosen, err := r.plan(n, seed)
		require.NoError(t, err)
		return chosen
	}
	few := plan(1, 1)
	assert.Equal(t, map[state]bool{{4, 0}: true, {12, 0}: true}, few)
	all := plan(0, 1)
	assert.Equal(t, all, plan(1000, 2))
	for s := range all {
		assert.NotContains(t, []int{0, 2, 5, 6, 7, 8, 10, 13}, s.step, "nothing happens there: %v", s)
	}
	assert.Len(t, plan(9, 1), 9)
	assert.Equal(t, plan(9, 1), plan(9, 1))
	assert.NotEqual(t, plan(9, 1), plan(9, 2))
}
