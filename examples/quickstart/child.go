package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A child is the provider in a process of its own, which can be killed.
type child struct {
	cmd  *exec.Cmd
	life io.Closer     // its standard input, whose end asks it to drain
	done chan struct{} // closed when it has ended
	err  error         // how, once it has
}

func (w *world) startChild() (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	c := &child{cmd: exec.Command(self, "--platform", w.platform.URL, "--state", w.state, "--until-eof"), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = w.journal, os.Stderr
	if c.life, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	say(w.journal, "parent", "started", "the provider, process %d", c.cmd.Process.Pid)
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// kill ends the process as a crash would.
func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	<-c.done
	return err
}

// killed reports whether a signal ended it.
func (c *child) killed() bool {
	<-c.done
	return c.cmd.ProcessState.ExitCode() < 0
}

// drain asks the process to end well, and kills it when stop is closed or it takes
// longer than a drain may. The end of its input works on every system, and also if this
// process is killed; and it does no harm to a process that got the terminal's Ctrl-C too.
func (c *child) drain(stop <-chan struct{}) error {
	_ = c.life.Close() // closed already if it has ended
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	select {
	case <-c.done:
		return c.err
	case <-stop:
	case <-late.C:
	}
	return errors.Join(errors.New("the provider did not end in time"), c.kill())
}

// moments are when the provider is killed.
var moments = []struct {
	name  string
	text  string
	saved bool                   // the reply is, so it must arrive
	fault agentjobtest.FaultKind // of the response, if there is one
}{
	{"while the agent thinks, before a reply is saved", "think 1h", false, 0},
	{"after the reply is saved, before the platform has it", "add milk", true, agentjobtest.CutBefore},
	{"after the platform has the reply, before the provider knows", "add bread", true, agentjobtest.CutAfter},
}

func (w *world) responses() (n int) {
	for _, r := range w.platform.Requests() {
		if r.Route == agentjobtest.RouteRespond {
			n++
		}
	}
	return n
}

// crash kills the provider at every moment, starts it again, and checks what becomes
// of the task. It returns the provider that is running at the end.
func (w *world) crash(ctx context.Context, c *child) (*child, error) {
	eve := w.customer("Eve")
	for _, moment := range moments {
		say(w.journal, "parent", "kills", "%s", moment.name)
		var fault *agentjobtest.Injection
		before := w.responses()
		if moment.saved {
			fault = w.platform.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: moment.fault})
		}
		m, err := eve.ask(moment.text)
		if err != nil {
			return c, err
		}
		if moment.saved {
			err = w.platform.Await(ctx, agentjobtest.RouteRespond, before+1)
		} else {
			err = w.journal.await(ctx, "claimed", m.ID)
		}
		if err := errors.Join(err, c.kill()); err != nil {
			return c, err
		}
		if fault != nil {
			fault.Clear()
		}
		if c, err = w.startChild(); err != nil {
			return nil, err
		}
		if err := w.aftermath(ctx, eve, m, moment.saved); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (w *world) aftermath(ctx context.Context, eve *customer, m *agentjobtest.Message, saved bool) error {
	ended := "interrupted"
	if saved {
		ended = "delivered"
		if _, err := eve.hear(ctx, m); err != nil {
			return err
		}
	}
	if err := w.journal.await(ctx, ended, m.ID); err != nil {
		return fmt.Errorf("wait for task %s to be %s: %w", short(m.ID), ended, err)
	}
	if n := m.Counts().Claims; n != 1 {
		return fmt.Errorf("task %s was claimed %d times", short(m.ID), n)
	}
	return nil
}
