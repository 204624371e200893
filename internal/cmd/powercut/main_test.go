package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if childMain() {
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-store x":  `there is no store "x"`,
		"-states x": "invalid value",
		"-tasks 0":  "at least 1 task",
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), strings.Fields(args), &stdout, &stderr), args)
		assert.Contains(t, stderr.String(), want, args)
		assert.Empty(t, stdout.String(), args)
	}
}

func TestReport(t *testing.T) {
	found := tally{states: 5}
	for range maxTexts + 1 {
		found.count(&found.lost, "a finding")
	}
	found.rerun, found.early, found.unopenable = 2, 3, 4
	rows := []row{
		{store: "x", name: "order", tally: tally{states: 100, early: 1}},
		{store: "x", name: "all", tally: found},
		{store: "x", name: "restart", tally: tally{states: 100, rerun: 1}},
	}
	var stdout, stderr bytes.Buffer
	total, err := report(rows, &stdout, &stderr)
	assert.NoError(t, err)
	assert.Equal(t, "states=5 lost=21 rerun=3 early=4 unopenable=4", last(stdout.String()))
	assert.Equal(t, 32, total.bad())
	assert.Equal(t, maxTexts, strings.Count(stderr.String(), "a finding\n"))
	assert.Equal(t, "and 1 more", last(stderr.String()))
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
