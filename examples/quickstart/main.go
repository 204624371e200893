// Command quickstart shows an AgentJob provider at work: an agent registers, comes
// online, claims the chat tasks of two customers and delivers replies. The platform and
// the customers are simulated in the same process, so it needs no account and no network.
//
//	go run ./examples/quickstart            # ends by itself
//	go run ./examples/quickstart --crash    # kills the provider at three moments on the way
//	go run ./examples/quickstart --keep     # the customers keep talking; kill the provider yourself
//
// With --platform URL it is the provider alone, of a platform that runs elsewhere, until
// a signal comes. The first SIGINT or SIGTERM lets it finish, the second stops it.
//
// The exit code is 0 when all went as it should, 1 with the reason on standard error, 2
// for wrong flags. What happens is told on standard output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// patience is how long the customers' script may take.
const patience = 2 * time.Minute

type options struct {
	state, platform string
	keep, crash     bool
	untilEOF        bool
	stop            <-chan struct{} // a second signal
}

func main() {
	var o options
	flag.StringVar(&o.state, "state", "", "keep the registration and the records in this `folder` (default a temporary one, removed after a good end)")
	flag.StringVar(&o.platform, "platform", "", "be only the provider, of the platform at this `URL`; needs --state")
	flag.BoolVar(&o.keep, "keep", false, "keep the platform and the customers going, and the provider in a process of its own that is started again when it is killed")
	flag.BoolVar(&o.crash, "crash", false, "kill the provider at three moments and start it again")
	flag.BoolVar(&o.untilEOF, "until-eof", false, "with --platform: the end of standard input is like a first signal")
	flag.Parse()
	if flag.NArg() > 0 || o.platform != "" && (o.keep || o.crash || o.state == "") || o.platform == "" && o.untilEOF {
		fmt.Fprintln(os.Stderr, "quickstart: takes flags only; --platform needs --state and excludes --keep and --crash; --until-eof needs --platform")
		os.Exit(2)
	}
	ctx, stop := signals()
	o.stop = stop
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// signals ends ctx at the first signal and closes stop at the second.
func signals() (ctx context.Context, stop <-chan struct{}) {
	ctx, drain := context.WithCancelCause(context.Background())
	received, second := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-received
		drain(errors.New("a signal asked to end"))
		<-received
		close(second)
	}()
	return ctx, second
}

// inputOpen ends when standard input does.
func inputOpen(ctx context.Context) context.Context {
	ctx, drain := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		drain(errors.Join(errors.New("standard input has ended"), err))
	}()
	return ctx
}

func run(ctx context.Context, o options) (err error) {
	if o.platform != "" {
		if o.untilEOF {
			ctx = inputOpen(ctx)
		}
		return provider{o.platform, o.state, os.Stdout, o.stop}.run(ctx)
	}
	if o.state == "" {
		if o.state, err = os.MkdirTemp("", "agentjob-quickstart-*"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = os.RemoveAll(o.state)
			} else {
				err = fmt.Errorf("%w (the records are in %s)", err, o.state)
			}
		}()
	}
	var settings agentjobtest.Settings
	if o.keep {
		settings.Deadline = keptDeadline
	}
	w, err := openWorld(o.state, newJournal(os.Stdout), settings)
	if err != nil {
		return err
	}
	defer w.platform.Close()
	play := w.together
	if o.keep || o.crash {
		play = w.apart
	}
	return errors.Join(play(ctx, o), w.summary())
}

// together plays the script with the provider in this process.
func (w *world) together(ctx context.Context, o options) error {
	telling, giveUp := context.WithCancelCause(ctx)
	limited, cancel := context.WithTimeout(telling, patience)
	defer cancel()
	serving, drain := context.WithCancel(ctx)
	defer drain()
	ended := make(chan error, 1)
	go func() {
		err := provider{w.platform.URL, w.state, w.journal, o.stop}.run(serving)
		giveUp(errors.New("the provider has ended"))
		ended <- err
	}()
	err := w.meet(limited)
	if err == nil {
		err = w.converse(limited)
	}
	drain()
	if failed := <-ended; failed != nil {
		return failed // the reason for the rest
	}
	return err
}

// apart plays it with the provider in a process of its own.
func (w *world) apart(ctx context.Context, o options) error {
	c, err := w.startChild()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A provider that ends before it is online has said why.
	meeting, giveUp := context.WithCancelCause(limited)
	first := c
	go func() {
		<-first.done
		giveUp(errors.New("the provider has ended"))
	}()
	if err = w.meet(meeting); err == nil && o.crash {
		c, err = w.crash(limited, c)
	}
	if err == nil {
		err = w.converse(limited)
	}
	if err == nil && o.keep {
		c, err = w.keepUp(ctx, c)
	}
	if c != nil {
		err = errors.Join(err, c.drain(o.stop))
	}
	return err
}

// keepUp lets the customers talk, and starts the provider again whenever it is killed,
// until a signal comes.
func (w *world) keepUp(ctx context.Context, c *child) (*child, error) {
	say(w.journal, "parent", "keeps on", "until Ctrl-C; the provider's folder is %s, kill its process whenever you like", w.state)
	ctx, end := context.WithCancel(ctx)
	defer end()
	talked := make(chan struct{})
	go func() {
		w.chatter(ctx)
		close(talked)
	}()
	defer func() { end(); <-talked }()
	for {
		select {
		case <-ctx.Done():
			return c, nil
		case <-c.done:
		}
		if !c.killed() {
			return c, nil // it drains at a signal that both got; its exit code tells
		}
		say(w.journal, "parent", "sees", "that the provider was killed, and starts it again")
		next, err := w.startChild()
		if err != nil {
			return c, err
		}
		c = next
	}
}
