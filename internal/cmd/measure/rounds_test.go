package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSidesTakeTurns(t *testing.T) {
	var order []string
	var bounded bool
	side := func(name string) measure {
		return func(ctx context.Context) (sample, error) {
			_, bounded = ctx.Deadline()
			order = append(order, name)
			return sample{"n": float64(len(order))}, nil
		}
	}
	f := figure{sides: []string{"A", "B"}, set: func(context.Context, *bench) (map[string]measure, func() error, error) {
		return map[string]measure{"A": side("A"), "B": side("B")}, func() error { order = append(order, "done"); return nil }, nil
	}}
	rounds, err := (&bench{rounds: 3, log: io.Discard}).interleave(t.Context(), f)
	require.NoError(t, err)
	assert.Equal(t, []string{"A", "B", "A", "B", "A", "B", "done"}, order)
	assert.Equal(t, []round{{"A": {"n": 1}, "B": {"n": 2}}, {"A": {"n": 3}, "B": {"n": 4}}, {"A": {"n": 5}, "B": {"n": 6}}}, rounds)
	assert.True(t, bounded, "a side that hangs ends")
}

func TestASideThatFailsEndsTheFigure(t *testing.T) {
	done := 0
	f := figure{sides: []string{"A"}, set: func(context.Context, *bench) (map[string]measure, func() error, error) {
		return map[string]measure{"A": func(context.Context) (sample, error) { return nil, errors.New("broken") }}, func() error { done++; return nil }, nil
	}}
	_, err := (&bench{rounds: 3, log: io.Discard}).interleave(t.Context(), f)
	assert.EqualError(t, err, "A: broken")
	assert.Equal(t, 1, done, "what was set up is taken down")
}

func TestARatioIsTheMedianOfTheRoundsRatios(t *testing.T) {
	rounds := []round{
		{"ours": {"x": 1}, "theirs": {"x": 10}},  // 0.1
		{"ours": {"x": 90}, "theirs": {"x": 30}}, // 3
		{"ours": {"x": 8}, "theirs": {"x": 10}},  // 0.8
	}
	s, measured := over(rounds, beside(of("ours", "x"), of("theirs", "x")))
	assert.True(t, measured)
	assert.Equal(t, spread{0.1, 0.8, 3}, s, "and not that of the medians, 8/10 by luck of 10 and 30")
	s, _ = over(rounds[:2], of("ours", "x"))
	assert.Equal(t, spread{1, 45.5, 90}, s, "of two it is the mean")
}

func TestNumbersOfARound(t *testing.T) {
	r := round{"a": {"x": 12}, "b": {"x": 4}}
	a, b, none := of("a", "x"), of("b", "x"), of("b", "y")
	for name, c := range map[string]struct {
		number number
		want   float64
	}{
		"beside": {beside(a, b), 3}, "minus": {minus(a, b), 8}, "per": {per(a, 6), 2}, "least": {least(a, b, a), 4},
	} {
		x, measured := c.number(r)
		assert.True(t, measured, name)
		assert.InDelta(t, c.want, x, 0, name)
	}
	for name, n := range map[string]number{
		"of": none, "beside": beside(a, none), "minus": minus(none, b), "per": per(none, 2), "least": least(a, none),
	} {
		_, measured := n(r)
		assert.False(t, measured, "%s: what was not measured is not zero", name)
	}
}
