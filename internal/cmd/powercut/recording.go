package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// A recording is a provider's life as strace saw it.
type recording struct {
	*world
	kind    kind
	folder  string // that the provider worked in, empty when it began
	steps   []systrace.Step
	marks   []mark
	replies map[string][]byte // the bytes that were sent
}

// errNoStrace: the system can't trace.
var errNoStrace = errors.New("strace is needed, on Linux: apt-get install strace")

func straceMissing() error {
	if _, err := exec.LookPath("strace"); err != nil {
		return errNoStrace
	}
	return nil
}

// recordTime bounds a recording, so that a provider that hangs is an error.
const recordTime = 2 * time.Minute

// record has a provider serve tasks in two lives, and returns the trace.
func record(ctx context.Context, w *world, k kind, tasks int, faults []string) (_ *recording, err error) {
	if err := straceMissing(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recordTime, fmt.Errorf("it was not done after %v", recordTime))
	defer cancel()
	temp, err := os.MkdirTemp("", "powercut-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return nil, err
	}
	r := &recording{world: w, kind: k, folder: filepath.Join(temp, "disk")}
	if err := os.Mkdir(r.folder, 0o700); err != nil {
		return nil, err
	}
	trace := filepath.Join(temp, "trace")
	if err := r.serve(ctx, trace, tasks, faults); err != nil {
		return nil, fmt.Errorf("recording a provider on the %s store: %w", k.name, errors.Join(context.Cause(ctx), err))
	}
	return r, r.read(trace, tasks)
}

func (r *recording) serve(ctx context.Context, trace string, tasks int, faults []string) error {
	p, err := r.start(ctx, trace, faults)
	if err != nil {
		return err
	}
	half := (tasks + 1) / 2
	err = r.ask(0, half)
	if err == nil {
		err = p.await(half)
	}
	if err == nil {
		r.next()
		_, err = io.WriteString(p.in, "again\n")
		err = errors.Join(err, r.ask(half, tasks))
	}
	if err == nil {
		err = p.await(tasks)
	}
	return errors.Join(err, p.end())
}

func taskID(i int) string { return fmt.Sprintf("task-%04d", i) }

// ask sends messages, which wait for the provider if it is not there.
func (r *recording) ask(from, to int) error {
	for i := from; i < to; i++ {
		_, err := r.platform.User("customer").Chat(r.agent).SendMessage(agentjobtest.MessageOptions{ID: taskID(i), Text: "Hello", Queue: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads the trace, and makes sure that it shows what is to be judged.
func (r *recording) read(trace string, tasks int) error {
	file, err := os.Open(trace)
	if err != nil {
		return err
	}
	defer file.Close()
	if r.steps, err = systrace.Parse(file); err != nil {
		return err
	}
	if r.marks, err = marksIn(r.steps); err != nil {
		return err
	}
	r.replies = map[string][]byte{}
	for _, request := range r.platform.Requests() {
		if request.Route == agentjobtest.RouteRespond {
			r.replies[strings.Split(request.Path, "/")[4]] = request.Body
		}
	}
	e := newExpected()
	for _, m := range r.marks {
		e.note(m)
	}
	if len(e.ran) != tasks || len(e.sent) != len(r.replies) || len(e.sent) == 0 || len(e.claimed) != tasks || len(e.saved) != len(e.sent) || len(e.bound) != 1 {
		return fmt.Errorf("the trace does not show the provider's life: of %d tasks %d were claimed, %d run, %d saved, and %d of %d replies sent",
			tasks, len(e.claimed), len(e.ran), len(e.saved), len(e.sent), len(r.replies))
	}
	return nil
}

// A provider is the traced process.
type provider struct {
	*recording
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // that it tells; closed at its end
	ended  map[string]bool
	known  map[string]bool
	stderr bytes.Buffer
}

func (r *recording) start(ctx context.Context, trace string, faults []string) (*provider, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(assignment{Store: r.kind.name, Folder: r.folder, URL: r.front.URL, Key: r.agent.Key})
	if err != nil {
		return nil, err
	}
	command := systrace.Command(trace, faults, self)
	p := &provider{
		recording: r, cmd: exec.CommandContext(ctx, command[0], command[1:]...),
		lines: make(chan string), ended: map[string]bool{}, known: map[string]bool{},
	}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(settings), "NO_PROXY=127.0.0.1")
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = 10 * time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); { // its error is the process's end, which Wait tells of
			p.lines <- lines.Text()
		}
	}()
	return p, nil
}

// stalled is when a provider is taken to have lost what it was handed out: a poll that it gives up because
// its store fails takes a task with it.
const stalled = 3 * time.Second

// await returns when so many tasks have ended.
func (p *provider) await(n int) error {
	for len(p.ended) < n {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return fmt.Errorf("the provider ended after %d of %d tasks", len(p.ended), n)
			}
			what, id, _ := strings.Cut(line, " ")
			p.known[id] = true
			if what == "END" {
				p.ended[id] = true
			}
		case <-time.After(stalled):
			for i := range n {
				if id := taskID(i); !p.known[id] {
					p.platform.HandOutAgain(id)
				}
			}
		}
	}
	return nil
}

// end has the provider drain, and waits for its end.
func (p *provider) end() error {
	err := p.in.Close()
	for range p.lines { // it must not wait for its reader
	}
	err = errors.Join(err, p.cmd.Wait())
	if err != nil {
		err = fmt.Errorf("the traced provider: %w\n%s", err, &p.stderr)
	}
	return err
}
