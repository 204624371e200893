package main

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// A mark is a moment of a task's life in the trace: the beginning of the system call that tells of it, so
// that nothing which a power cut then takes away can have come before it.
type mark struct {
	step int // index
	line int
	what string // "RUN", "SEND", "CLAIMED", "SAVED": acknowledged; "BOUND"
	name string // of the task; of the key
}

var (
	told = regexp.MustCompile(`^(RUN|CLAIMED|SAVED|BOUND) (\S+)\n$`)
	sent = regexp.MustCompile(`^POST /api/agents/tasks/([^/ ]+)/response HTTP/1\.1\r\n`)
)

// marksIn finds the lines of [teller], and the first bytes of replies, which leave through
// sockets: the worker speaks HTTP/1.1 with a platform on loopback.
func marksIn(steps []systrace.Step) ([]mark, error) {
	var marks []mark
	for i, step := range steps {
		if step.End || step.Call.Name != "write" {
			continue
		}
		data, err := step.Call.Bytes(1)
		if err != nil {
			return nil, err
		}
		fd, err := step.Call.Int(0)
		if err != nil {
			return nil, err
		}
		if m := told.FindSubmatch(data); m != nil && fd == 1 {
			marks = append(marks, mark{i, step.Line, string(m[1]), string(m[2])})
		} else if m := sent.FindSubmatch(data); m != nil {
			id, err := url.PathUnescape(string(m[1]))
			if err != nil {
				return nil, err
			}
			marks = append(marks, mark{i, step.Line, "SEND", id})
		}
	}
	return marks, nil
}

// Expected is what must be true after a power cut: what had come before it.
type expected struct {
	claimed, saved map[string]bool // acknowledged by the store
	bound          map[string]bool // keys
	ran, sent      map[string]bool
	last           string // task that ran
}

func newExpected() *expected {
	return &expected{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, ""}
}

func (e *expected) note(m mark) {
	switch m.what {
	case "RUN":
		e.ran[m.name], e.last = true, m.name
	case "SEND":
		e.sent[m.name] = true
	default:
		map[string]map[string]bool{"CLAIMED": e.claimed, "SAVED": e.saved, "BOUND": e.bound}[m.what][m.name] = true
	}
}

func (m mark) String() string { return strings.ToLower(m.what) + " " + m.name }
