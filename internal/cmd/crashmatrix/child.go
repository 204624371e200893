package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// A child is the provider in a process of its own.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	told  *told
	errs  *tail
	ended chan struct{} // closed when it has ended and all that it told is here
}

// startChild starts this program again as a provider. The end of ctx kills it.
func startChild(ctx context.Context, o orders) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self), told: newTold(), errs: &tail{}, ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), ordersVariable+"="+string(text))
	c.cmd.Stdout, c.cmd.Stderr = c.told, c.errs
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	go func() {
		_ = c.cmd.Wait() // its state tells
		close(c.ended)
	}()
	return c, nil
}

// kill ends it as a crash would, also when it is suspended.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}

func (c *child) lives() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// release lets a moment that is held go on.
func (c *child) release() error {
	_, err := io.WriteString(c.in, "go\n")
	return err
}

// drain asks the process to end well, as its own parent's end would.
func (c *child) drain() { _ = c.in.Close() } // closed already if it has ended

// drained waits for the end of one that was asked to drain.
func (c *child) drained(ctx context.Context) error {
	code, err := c.code(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("the provider ended with code %d and not well: %w", code, c.story())
	}
	return err
}

// died waits until the process has been killed by its own hand.
func (c *child) died(ctx context.Context, name string) error {
	code, err := c.code(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%q did not come: %w", name, err)
	case code != killedCode || !c.told.has("at", name):
		return fmt.Errorf("the provider ended with code %d before %q came: %w", code, name, c.story())
	}
	return nil
}

// refused waits until the process has ended since another has the records.
func (c *child) refused(ctx context.Context) (took time.Duration, err error) {
	code, err := c.code(ctx)
	if err != nil {
		return 0, err
	}
	l, ok := c.told.find(0, func(l line) bool { return l.verb == "refused" })
	if code != exitRefused || !ok {
		return 0, fmt.Errorf("a second worker was not refused, it ended with code %d: %w", code, c.story())
	}
	return time.ParseDuration(l.detail)
}

func (c *child) code(ctx context.Context) (int, error) {
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("the provider still runs: %w: %w", context.Cause(ctx), c.story())
	}
}

// await waits until the process has told something.
func (c *child) await(ctx context.Context, verb, subject, detail string) error {
	_, err := c.awaitLine(ctx, 0, func(l line) bool { return l == line{verb, subject, detail} })
	if err != nil {
		err = fmt.Errorf("wait for %q: %w", strings.TrimSpace(verb+" "+subject+" "+detail), err)
	}
	return err
}

func (c *child) awaitLine(ctx context.Context, from int, match func(line) bool) (line, error) {
	for {
		changed := c.told.wait()
		over := !c.lives() // then what it told is all here
		if l, ok := c.told.find(from, match); ok {
			return l, nil
		}
		if over {
			return line{}, fmt.Errorf("the provider ended: %w", c.story())
		}
		select {
		case <-changed:
		case <-c.ended:
		case <-ctx.Done():
			return line{}, fmt.Errorf("%w: %w", context.Cause(ctx), c.story())
		}
	}
}

// story is an error that tells what a process did last.
func (c *child) story() error {
	lines := c.told.all()
	var last []string
	for _, l := range lines[max(0, len(lines)-12):] {
		last = append(last, strings.TrimSpace(l.verb+" "+l.subject+" "+l.detail))
	}
	return errors.New(strings.TrimSpace(strings.Join(last, "; ") + " " + c.errs.String()))
}

// A line is one thing that a provider told.
type line struct{ verb, subject, detail string }

// told gathers what a provider tells.
type told struct {
	mu      sync.Mutex
	part    []byte // of a line
	lines   []line
	changed chan struct{}
}

func newTold() *told { return &told{changed: make(chan struct{})} }

func (t *told) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, p...)
	for {
		text, rest, ok := bytes.Cut(t.part, []byte("\n"))
		if !ok {
			break
		}
		t.part = rest
		parts := append(strings.Split(string(text), "\t"), "", "")
		t.lines = append(t.lines, line{parts[0], parts[1], parts[2]})
	}
	close(t.changed)
	t.changed = make(chan struct{})
	return len(p), nil
}

func (t *told) wait() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

func (t *told) all() []line {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

func (t *told) find(from int, match func(line) bool) (line, bool) {
	for _, l := range t.all()[from:] {
		if match(l) {
			return l, true
		}
	}
	return line{}, false
}

func (t *told) has(verb, subject string) bool {
	_, ok := t.find(0, func(l line) bool { return l.verb == verb && l.subject == subject })
	return ok
}

// A tail keeps the end of a process's complaints.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = slices.Delete(t.text, 0, over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.text)), " ")
}
