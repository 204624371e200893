package agentjob_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
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
// The worker draws its back-offs at random and its goroutines race, so that a schedule may break a
// promise in one run and not in the next: it is replayed until it does, and while one is shrunk, each
// try is.
func TestModel(t *testing.T) { rapid.Check(t, checked(t, sabotage{})) }

func checked(t *testing.T, by sabotage) func(*rapid.T) {
	runs := 1
	return func(rt *rapid.T) {
		s := schedules.Draw(rt, "schedule")
		broken := s.replay(t, by, runs)
		if len(broken) == 0 {
			return
		}
		all := strings.Join(broken, "\n")
		if runs == 1 {
			runs = 10
			first := fmt.Sprintf("%s\nwas broken first by\n%s", all, s)
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(first)
				}
			})
		}
		rt.Log(all)
		// Nothing but which promise it is, so that the same is sought when the schedule is shrunk.
		i := slices.IndexFunc(promises, func(p string) bool { return strings.Contains(all, p+":") })
		rt.Fatalf("a broken promise: %s", promises[i])
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
	require.Empty(t, s.replay(t, sabotage{}, 100))
}

// replay runs a schedule up to so many times, until it breaks a promise, and says which.
func (s schedule) replay(t *testing.T, by sabotage, times int) []string {
	for range times {
		if broken := s.run(t, by); len(broken) > 0 {
			return broken
		}
	}
	return nil
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

// Schedules that broke a promise once, shrunk. What they showed is also tested one by one, in
// worker_ending_test.go; here they are run as they were found.
var found = map[string]string{
	"a poll into the slot of a stuck handler lost the next task": `
{"concurrency":1,"backlog":100,"chats":100,"deadline":"30m0s","camelCase":true}
{"at":"5m14s","do":"send","how":"deaf","takes":"45m0s"}`,
	"Run returned before a stuck handler and did not say so": `
{"concurrency":1,"backlog":100,"chats":100,"deadline":"30m0s"}
{"at":"0s","do":"send","how":"deaf","takes":"45m0s"}
{"at":"7m23s","do":"lose lease"}`,
	"a task whose time was over was called cancelled": `
{"concurrency":1,"backlog":100,"chats":100,"deadline":"30m0s"}
{"at":"0s","do":"send","how":"answer"}
{"at":"2s","do":"send","how":"answer","takes":"45m0s"}
{"at":"16s","do":"send","how":"unavailable","takes":"45m0s"}
{"at":"3m20s","do":"again","task":2}`,
	"a poll that a full backlog gave up lost a task": `
{"concurrency":5,"backlog":1,"chats":2,"deadline":"30m0s"}
{"at":"0s","do":"crash"}
{"at":"3s","do":"ready","how":"deaf","for":"3m0s"}
{"at":"3s","do":"send","how":"panic"}
{"at":"4s","do":"send","how":"deaf","takes":"1s"}
{"at":"27s","do":"send","how":"panic","takes":"7s"}
{"at":"45s","do":"stop"}
{"at":"3m32s","do":"send","how":"unasked"}
{"at":"6m36s","do":"send","how":"talk","takes":"1s"}
{"at":"11m6s","do":"send","how":"answer"}`,
}

func TestModelFoundSchedules(t *testing.T) {
	for name, text := range found {
		t.Run(name, func(t *testing.T) {
			s, err := parseSchedule(text)
			require.NoError(t, err)
			require.Empty(t, s.replay(t, sabotage{}, 3), s)
		})
	}
}
