package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A world is all that is not the provider: the platform and its customers.
type world struct {
	platform *agentjobtest.Server
	state    string
	journal  *journal
	agent    *agentjobtest.Agent // known once the provider is online

	mu   sync.Mutex
	sent []sent
}

type sent struct {
	customer string
	*agentjobtest.Message
}

// openWorld starts the platform. Its memory ends with the process, a provider's does
// not: an agent that is in the state folder is known again, at the same address.
func openWorld(state string, journal *journal, settings agentjobtest.Settings) (*world, error) {
	address := "127.0.0.1:0"
	known, err := agentjob.LoadRegistration(registrationFile(state))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		base, err := url.Parse(known.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("the registration's address: %w", err)
		}
		address = base.Host
		if host := base.Hostname(); net.ParseIP(host) == nil || !net.ParseIP(host).IsLoopback() {
			return nil, fmt.Errorf("the agent in %s is registered at %s, not at a simulated platform: use --platform, or another folder", state, known.BaseURL)
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start the platform where the agent in %s expects it: %w (wait until the address is free, or use another folder)", state, err)
	}
	w := &world{platform: agentjobtest.NewServerOn(listener, settings), state: state, journal: journal}
	if known != nil && known.Outcome == agentjob.Registered {
		w.platform.RestoreAgent(known.AgentID, known.AgentName, known.APIKey.Reveal())
	}
	say(journal, "platform", "listens", "at %s", w.platform.URL)
	return w, nil
}

// meet waits for the provider to be online.
func (w *world) meet(ctx context.Context) error {
	if err := w.journal.await(ctx, "online", ""); err != nil {
		return fmt.Errorf("wait for the provider to come online: %w", err)
	}
	registration, err := agentjob.LoadRegistration(registrationFile(w.state))
	if err != nil {
		return err
	}
	if w.agent = w.platform.Agent(registration.AgentID); w.agent == nil {
		return fmt.Errorf("the platform does not know agent %s", short(registration.AgentID))
	}
	return nil
}

// A customer holds one conversation.
type customer struct {
	name  string
	world *world
	chat  *agentjobtest.Chat
}

func (w *world) customer(name string) *customer {
	return &customer{name, w, w.platform.User(name).Chat(w.agent)}
}

func (c *customer) ask(text string) (*agentjobtest.Message, error) {
	m, err := c.chat.Send(text)
	if err != nil {
		return nil, fmt.Errorf("%s can't send a message: %w", c.name, err)
	}
	c.world.mu.Lock()
	c.world.sent = append(c.world.sent, sent{c.name, m})
	c.world.mu.Unlock()
	say(c.world.journal, c.name, "asks", "%s %q", short(m.ID), text)
	return m, nil
}

// hear waits for the reply.
func (c *customer) hear(ctx context.Context, m *agentjobtest.Message) (string, error) {
	reply, err := m.WaitReply(ctx)
	if err != nil {
		return "", fmt.Errorf("%s waits for the reply to %s: %w", c.name, short(m.ID), cmp.Or(context.Cause(ctx), err))
	}
	say(c.world.journal, c.name, "hears", "%s %q", short(m.ID), reply)
	return reply, nil
}

// script is what the two customers say. Their first messages are the same, so that a
// mix-up of conversations would show in the last replies, which are checked.
var script = []struct {
	customer string
	messages []string
	last     string
}{
	{"Ada", []string{"add milk", "add bread", "what is on my list?"}, "On your list (2): milk, bread."},
	{"Ben", []string{"add milk", "what is on my list?"}, "On your list (1): milk."},
}

// converse plays the script, the customers at the same time.
func (w *world) converse(ctx context.Context) error {
	var talking sync.WaitGroup
	errs := make([]error, len(script))
	for i, part := range script {
		c := w.customer(part.customer)
		talking.Go(func() {
			var reply string
			for _, text := range part.messages {
				m, err := c.ask(text)
				if err == nil {
					reply, err = c.hear(ctx, m)
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
			if reply != part.last {
				errs[i] = fmt.Errorf("%s's last reply should be %q", c.name, part.last)
			}
		})
	}
	talking.Wait()
	return errors.Join(errs...)
}

// chatter keeps the customers talking until ctx ends. A message without a reply, since
// the provider was killed over it, is no reason to stop.
func (w *world) chatter(ctx context.Context) {
	var talking sync.WaitGroup
	for _, part := range script {
		talking.Go(func() {
			for ctx.Err() == nil {
				c := w.customer(part.customer)
				for _, text := range []string{"add tea", "think 3s", "what is on my list?"} {
					if err := c.tryAsking(ctx, text); err != nil && ctx.Err() == nil {
						say(w.journal, c.name, "gives up", "%v", err)
					}
					if pause(ctx, 2*time.Second); ctx.Err() != nil {
						return
					}
				}
			}
		})
	}
	talking.Wait()
}

// keptDeadline is short, so that nobody waits long for a task that was interrupted.
const keptDeadline = 10 * time.Second

// tryAsking waits for the reply no longer than the deadline.
func (c *customer) tryAsking(ctx context.Context, text string) error {
	m, err := c.ask(text)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, keptDeadline, agentjobtest.ErrExpired)
	defer cancel()
	_, err = c.hear(limited, m)
	return err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// summary counts what became of all messages, as the platform saw it. Lost is a reply
// that the provider recorded as saved and that did not arrive.
func (w *world) summary() error {
	var delivered, lost, duplicated, interrupted int
	happy := map[string]bool{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.sent {
		counts := m.Counts()
		switch {
		case counts.Deliveries > 0:
			delivered++
			duplicated += counts.Deliveries - 1
			happy[m.customer] = true
		case w.journal.has("saved", m.ID):
			lost++
		case w.journal.has("interrupted", m.ID):
			interrupted++
		}
	}
	line := fmt.Sprintf("done: %d replies delivered to %d customers, %d lost, %d duplicated", delivered, len(happy), lost, duplicated)
	if interrupted > 0 {
		line += fmt.Sprintf(", %d interrupted", interrupted)
	}
	_, err := fmt.Fprintln(w.journal, line)
	if lost+duplicated > 0 {
		err = errors.Join(err, fmt.Errorf("%d replies were lost and %d duplicated", lost, duplicated))
	}
	return err
}
