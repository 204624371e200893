package agentjobtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Errors of the website's side.
var (
	ErrOffline   = errors.New("the agent is offline: no heartbeat in two minutes; start the worker and await its first one")
	ErrCancelled = errors.New("the message was cancelled")
	ErrExpired   = errors.New("no reply came before the deadline")
	ErrFileType  = errors.New("the agent's last heartbeat does not announce files of this type")
)

// A User is a customer of the website.
type User struct {
	Name string
	srv  *Server
}

// User returns a customer. Two calls with one name are the same person with different chats.
func (s *Server) User(name string) *User { return &User{name, s} }

// A Chat is one conversation of a user with an agent.
type Chat struct {
	id    string
	user  *User
	agent *Agent
	// messages is guarded by the server's lock.
	messages []message
}

type message struct {
	Role        string       `json:"role"`
	Content     string       `json:"content"`
	Attachments []Attachment `json:"attachments,omitempty"`
}

// An Attachment is a customer's file as a task shows it. Files are not served.
type Attachment struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
	URL         string `json:"url"`
}

// Chat opens a new conversation with an agent.
func (u *User) Chat(agent *Agent) *Chat {
	return &Chat{id: uuid.NewString(), user: u, agent: agent}
}

// A Message is one message of a customer, a task to the provider.
type Message struct {
	ID   string // the task's id
	Free bool   // one of the agent's free messages of the day
	task *task
	srv  *Server
}

// MessageOptions is a message with everything that can be said of it.
type MessageOptions struct {
	Text        string
	ID          string // of the task; "" draws one
	Attachments []Attachment
	// Task replaces the task object by any other JSON, to see how a provider bears it. It is
	// handed out as it is; give ID too if it has one.
	Task json.RawMessage
	// Queue sends although the agent is offline or does not read the attachments, which the
	// website does not.
	Queue bool
}

// Send sends a message. It returns [ErrOffline] if the agent is offline, before any charge.
func (c *Chat) Send(text string) (*Message, error) { return c.SendMessage(MessageOptions{Text: text}) }

// SendMessage sends a message with options. Like the website it checks before any charge that
// the agent is online and reads the attachments: [ErrOffline], [ErrFileType].
func (c *Chat) SendMessage(o MessageOptions) (*Message, error) {
	s := c.user.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	o.Attachments = slices.Clone(o.Attachments)
	if o.ID == "" {
		o.ID = uuid.NewString()
	}
	switch {
	case s.tasks[o.ID] != nil:
		return nil, fmt.Errorf("there is a task %q already", o.ID)
	case o.Task != nil && !json.Valid(o.Task):
		return nil, errors.New("the task is not JSON: inject a fault for answers that are not")
	case o.Queue:
	case !c.agent.online():
		return nil, ErrOffline
	case !reads(c.agent.types, o.Attachments):
		return nil, ErrFileType
	}
	first := len(c.messages) == 0
	if first {
		c.agent.chats++
	}
	c.messages = append(c.messages, message{Role: "user", Content: o.Text, Attachments: o.Attachments})
	t := &task{
		id: o.ID, agent: c.agent, chat: c, upTo: len(c.messages), first: first, attachments: o.Attachments,
		raw: o.Task, status: StatusQueued, free: c.agent.charge(), counts: Counts{Charges: 1},
	}
	s.tasks[t.id] = t
	c.agent.live = append(c.agent.live, t)
	c.agent.bell.ring()
	return &Message{ID: t.id, Free: t.free, task: t, srv: s}, nil
}

// Transcript returns the conversation as role and text, oldest first.
func (c *Chat) Transcript() [][2]string {
	c.user.srv.mu.Lock()
	defer c.user.srv.mu.Unlock()
	var out [][2]string
	for _, m := range c.messages {
		out = append(out, [2]string{m.Role, m.Content})
	}
	return out
}

// Cancel withdraws the message; nothing happens if it is over already.
func (m *Message) Cancel() {
	m.srv.mu.Lock()
	defer m.srv.mu.Unlock()
	m.srv.expire(m.task)
	if m.task.open() {
		m.task.become(StatusCancelled)
	}
}

// Status returns where the message is.
func (m *Message) Status() Status {
	m.srv.mu.Lock()
	defer m.srv.mu.Unlock()
	m.srv.expire(m.task)
	return m.task.status
}

// Progress returns what the provider reported last.
func (m *Message) Progress() Progress {
	m.srv.mu.Lock()
	defer m.srv.mu.Unlock()
	return m.task.progress
}

// Counts returns what happened to the message.
func (m *Message) Counts() Counts {
	m.srv.mu.Lock()
	defer m.srv.mu.Unlock()
	return m.task.counts
}

// WaitReply returns the reply's text once there is one. It returns [ErrCancelled], or
// [ErrExpired] when the deadline has passed on the platform's clock.
func (m *Message) WaitReply(ctx context.Context) (string, error) {
	if err := m.WaitClaim(ctx); err != nil {
		return "", err
	}
	m.srv.mu.Lock()
	left := m.task.deadline.Sub(m.srv.now())
	m.srv.mu.Unlock()
	// A deadline that passes is a change that nothing else tells of.
	wake := time.AfterFunc(left, func() {
		m.srv.mu.Lock()
		defer m.srv.mu.Unlock()
		m.task.bell.ring()
	})
	defer wake.Stop()
	err := m.srv.await(ctx, &m.task.bell, func() bool {
		m.srv.expire(m.task)
		return !m.task.open()
	})
	if err != nil {
		return "", err
	}
	m.srv.mu.Lock()
	defer m.srv.mu.Unlock()
	switch m.task.status {
	case StatusCancelled:
		return "", ErrCancelled
	case StatusFailed:
		return "", ErrExpired
	}
	return m.task.text, nil
}

// WaitClaim returns once the message has been handed out to a provider, or cancelled before.
// Its handler may not have started yet: wait for a signal of the handler's own to test a cancel.
func (m *Message) WaitClaim(ctx context.Context) error {
	return m.srv.await(ctx, &m.task.bell, func() bool { return m.task.counts.Claims > 0 || m.task.status != StatusQueued })
}

// WaitProgress returns the first report with at least the sequence number seq.
func (m *Message) WaitProgress(ctx context.Context, seq int64) (Progress, error) {
	err := m.srv.await(ctx, &m.task.bell, func() bool { return m.task.progress.Seq >= seq })
	return m.Progress(), err
}
