package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// times repeats a round.
func times(n int, r round) (all []round) {
	for range n {
		all = append(all, r)
	}
	return all
}

func TestAClaimIsJudgedByItsGoal(t *testing.T) {
	r := round{"ours": {"x": 30}, "theirs": {"x": 20}}
	ratio := beside(of("ours", "x"), of("theirs", "x"))
	for _, c := range []struct {
		goal  goal
		ratio number
		want  verdict
		text  string
	}{
		{goal{limit: 1.5}, ratio, ok, ">= 1.5 times"},
		{goal{limit: 1.6}, ratio, short, ">= 1.6 times"},
		{goal{limit: 1.5, most: true}, ratio, ok, "<= 1.5 times"},
		{goal{limit: 1.25, most: true}, ratio, short, "<= 1.25 times"},
		{goal{limit: 50, most: true, unit: "ms"}, nil, ok, "<= 50 ms"},
		{goal{limit: 29, most: true, unit: "ms"}, nil, short, "<= 29 ms"},
	} {
		got := claim{goal: c.goal, value: of("ours", "x"), ratio: c.ratio}.judge(times(enoughRounds, r))
		assert.Equal(t, c.want, got.Verdict, c.text)
		assert.Equal(t, c.text, got.Goal)
		assert.InDelta(t, 30, *got.Value, 0)
		assert.Equal(t, c.ratio == nil, got.Ratio == nil)
		assert.NotContains(t, got.Note, "quick look")
	}
}

func TestWhatASystemDoesNotTellIsNeitherOkNorShort(t *testing.T) {
	rounds := []round{{"ours": {"x": 1}, "theirs": {}}}
	c := claim{goal: goal{limit: 1}, value: of("ours", "y")}
	got := c.judge(rounds)
	assert.Equal(t, unsupported, got.Verdict)
	assert.Nil(t, got.Value, "unknown is not zero")

	c.value, c.ratio = of("ours", "x"), beside(of("ours", "x"), of("theirs", "x"))
	got = c.judge(rounds)
	assert.Equal(t, unsupported, got.Verdict)
	assert.InDelta(t, 1, *got.Value, 0)
	assert.Nil(t, got.Ratio)
}

func TestFewRoundsAreMarked(t *testing.T) {
	c := claim{unit: "ms", goal: goal{limit: 9, most: true, unit: "ms"}, value: of("ours", "x")}
	rounds := append(times(5, round{"ours": {"x": 2}}), round{"ours": {"x": 8.25}})
	assert.Equal(t, "2 to 8.25 ms in 6 rounds: a quick look, a figure takes 7", c.judge(rounds).Note)
}

func TestTheTableIsAligned(t *testing.T) {
	value, ratio := 1234.5, 0.8125
	rows := []row{
		{Name: "a", Value: &value, Unit: "tasks/s", Compared: "bare loop", Ratio: &ratio, Goal: ">= 0.8 times", Verdict: ok, Note: "n"},
		{Name: "longer", Unit: "ms", Compared: "-", Goal: "<= 5 ms", Verdict: unsupported, Note: "m"},
	}
	var out bytes.Buffer
	require.NoError(t, printTable(&out, rows, machine{Go: "go1", OS: "os", Arch: "arch", Cores: 2, Disk: "fs", Date: "today"}))
	assert.Equal(t, ""+
		"name    value  unit     compared with  ratio  goal               spread\n"+
		"a       1234   tasks/s  bare loop      0.812  >= 0.8 times  ok   n\n"+
		"longer  -      ms       -              -      <= 5 ms       n/a  m\n"+
		"go1, os/arch, 2 cores, file system fs, today\n", out.String())
}
