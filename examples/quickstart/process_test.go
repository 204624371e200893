package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lines gathers output and lets a test wait for what it says.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

func (l *lines) read() (text string, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String(), l.changed
}

// A process is a run of the program that a test talks to.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *lines
	errs   *lines
	offset int // what awaitLine has read
	ended  chan struct{}
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{
		t: t, cmd: exec.Command(binary, args...), ended: make(chan struct{}),
		out: &lines{changed: make(chan struct{})}, errs: &lines{changed: make(chan struct{})},
	}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.errs
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // its state is what counts
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		errs, _ := p.errs.read()
		discreet(t, p.stdout(), errs)
	})
	return p
}

// kill ends the process at once, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) wait() (code int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.t.Fatalf("it does not end\n%s", p.stdout())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) stdout() string {
	text, _ := p.out.read()
	return text
}

// awaitLine returns the next line with this beginning, and continues after it.
func (p *process) awaitLine(prefix string) string {
	p.t.Helper()
	late := time.After(30 * time.Second)
	for {
		text, changed := p.out.read()
		for {
			line, _, whole := strings.Cut(text[p.offset:], "\n")
			if !whole {
				break
			}
			p.offset += len(line) + 1
			if strings.HasPrefix(line, prefix) {
				return line
			}
		}
		select {
		case <-changed:
		case <-late:
			errs, _ := p.errs.read()
			p.t.Fatalf("no line %q in\n%s%s", prefix, text, errs)
		}
	}
}

// pidOf returns the process that a line ends with.
func pidOf(t *testing.T, line string) *os.Process {
	t.Helper()
	words := strings.Fields(line)
	pid, err := strconv.Atoi(words[len(words)-1])
	require.NoError(t, err)
	found, err := os.FindProcess(pid)
	require.NoError(t, err)
	return found
}
