package agentjob_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var replay = flag.String("schedule", "", "a file with a schedule for TestModelReplay, as a failed TestModel prints it")

// TestModel runs random schedules: customers, handlers, faults of the platform, the store and the
// process, and clocks, in virtual time, with the worker's promises as the model. A schedule that
// breaks one is shrunk and printed, and can be kept in a file and replayed:
//
//	go test ./agentjob -run Model -rapid.checks=1000
//	go test ./agentjob -run ModelReplay -schedule FILE
//
// The worker draws its back-offs at random, so that a schedule may have to be replayed a few times.
func TestModel(t *testing.T) { rapid.Check(t, checked(t, sabotage{})) }

func checked(t *testing.T, by sabotage) func(*rapid.T) {
	return func(rt *rapid.T) {
		s := schedules.Draw(rt, "schedule")
		if broken := s.run(t, by); len(broken) > 0 {
			rt.Fatalf("%s\nby the schedule\n%s", strings.Join(broken, "\n"), s)
		}
	}
}

func TestModelReplay(t *testing.T) {
	if *replay == "" {
		t.Skip("name a file with -schedule")
	}
	text, err := os.ReadFile(*replay)
	require.NoError(t, err)
	s, err := parseSchedule(string(text))
	require.NoError(t, err)
	require.Empty(t, s.run(t, sabotage{}))
}

func TestModelScheduleIsReadAsItIsPrinted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := schedules.Draw(rt, "schedule")
		again, err := parseSchedule(s.String())
		if err != nil || again.String() != s.String() {
			rt.Fatalf("%v\n%s\n%s", err, s, again)
		}
	})
}
