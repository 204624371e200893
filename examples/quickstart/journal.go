package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
)

// A journal passes the provider's lines on, whether it runs in this process or in a
// child, and remembers what they said of whom. It grows with every task, as the memory
// of the platform beside it does. It is safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	out     io.Writer
	partial []byte
	told    map[string]bool // "claimed 1234abcd"
	changed chan struct{}   // closed and replaced at every line
}

func newJournal(out io.Writer) *journal {
	return &journal{out: out, told: map[string]bool{}, changed: make(chan struct{})}
}

// Write takes lines, in pieces of any size.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.partial = append(j.partial, p...)
	for {
		line, rest, ok := bytes.Cut(j.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		if words := strings.Fields(string(line)); len(words) > 1 && words[0] == "provider" {
			j.told[strings.Join(words[1:min(3, len(words))], " ")] = true
			close(j.changed)
			j.changed = make(chan struct{})
		}
		_, err := j.out.Write(append(bytes.Clone(line), '\n'))
		j.partial = bytes.Clone(rest)
		if err != nil {
			return len(p), err
		}
	}
}

// has reports whether a line said this of a task.
func (j *journal) has(verb, taskID string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.told[line(verb, taskID)]
}

// await returns once a line says this, which it may have done already.
func (j *journal) await(ctx context.Context, verb, taskID string) error {
	for {
		j.mu.Lock()
		told, changed := j.told[line(verb, taskID)], j.changed
		j.mu.Unlock()
		if told {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func line(verb, taskID string) string { return strings.TrimSpace(verb + " " + short(taskID)) }
