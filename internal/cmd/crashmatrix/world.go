package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A world is one run of a row: a platform with a customer, and one provider after the other on one state.
type world struct {
	m        *matrix
	row      row
	dir      string
	clock    *clock
	door     *door
	platform *agentjobtest.Server
	agent    *agentjobtest.Agent
	customer *agentjobtest.User
	children []*child
	running  *child // the one that serves now; nil: none
	faults   []*agentjobtest.Injection
	asked    []question // the first is what the row is about
}

// A question is a message of the customer, in a chat of its own.
type question struct {
	*agentjobtest.Message
	chat    *agentjobtest.Chat
	allowed []fate
}

// A clock is the platform's, which jumps.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

func (m *matrix) newWorld(r row) (*world, error) {
	dir, err := os.MkdirTemp(m.dir, "state-*")
	if err != nil {
		return nil, err
	}
	w := &world{m: m, row: r, dir: dir, clock: &clock{}}
	settings := agentjobtest.Settings{
		Now: w.clock.now, MaxConcurrentChats: 10, // tasks that were cut off hold their place
		Deadline: r.deadline, NoResponseIdempotency: r.unforgiving || m.unforgiving,
	}
	if w.door, err = openDoor(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w.platform = agentjobtest.NewServerOn(w.door, settings)
	w.agent = w.platform.AddAgent("provider")
	w.customer = w.platform.User("customer")
	return w, nil
}

// close ends everything and leaves nothing.
func (w *world) close() error {
	w.killAll()
	w.platform.Close()
	return os.RemoveAll(w.dir)
}

func (w *world) killAll() {
	for _, c := range w.children {
		c.kill()
	}
	w.running = nil
}

// start starts a provider to which the moment comes.
func (w *world) start(ctx context.Context, at moment) (*child, error) {
	if !slices.ContainsFunc(w.children, (*child).lives) {
		if err := w.door.clear(ctx); err != nil {
			return nil, err
		}
	}
	c, err := startChild(ctx, orders{
		URL: w.platform.URL, Key: w.agent.Key, Store: w.m.store, Dir: w.dir,
		Moment: at, Sways: sway(), Resume: w.row.resumes, Sabotage: w.m.sabotage,
	})
	if err == nil {
		w.children = append(w.children, c)
		w.running = c
	}
	return c, err
}

// serve starts a provider and waits until it claims.
func (w *world) serve(ctx context.Context) (*child, error) {
	c, err := w.start(ctx, moment{})
	if err == nil {
		err = c.await(ctx, "event", "", string(agentjob.EventReady))
	}
	return c, err
}

// ask sends a message, also while the agent is offline.
func (w *world) ask(allowed ...fate) (question, error) {
	chat := w.customer.Chat(w.agent)
	m, err := chat.SendMessage(agentjobtest.MessageOptions{Text: "What is the answer?", Queue: true})
	q := question{m, chat, allowed}
	if err == nil {
		w.asked = append(w.asked, q)
	}
	return q, err
}

// fail makes requests go wrong until the aftermath at most.
func (w *world) fail(f agentjobtest.Fault) *agentjobtest.Injection {
	in := w.platform.Inject(f)
	w.faults = append(w.faults, in)
	return in
}

// crash starts a provider that kills itself at the moment, and waits for that.
func (w *world) crash(ctx context.Context, at moment) error {
	at.Do = die
	c, err := w.start(ctx, at)
	if err == nil {
		w.running = nil
		err = c.died(ctx, at.Name)
	}
	return err
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lines is all that the providers told.
func (w *world) lines() (all []line) {
	for _, c := range w.children {
		all = append(all, c.told.all()...)
	}
	return all
}
