package agentjob

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// A Handler turns a claimed task into a reply. It is the one thing that an
// embedder has to write.
//
// Handle runs at most once for a task, on a goroutine of its own; a Worker
// with a Concurrency above one calls it concurrently. ctx ends at the task's
// deadline, when the customer cancels, when the worker is stopped or loses its
// lease; [context.Cause] tells which ([ErrTaskExpired], [ErrTaskCancelled],
// [ErrStopped], [ErrLeaseLost]). A handler must return soon after ctx is done.
//
// An error ends the task as [EndFailed] and nothing is sent to the customer; wrap it
// with [Unavailable] if the next task would fail the same way. A panic ends
// this task only. The platform knows no way to give a task back: one that failed stays
// open there until its deadline (30 minutes by default) and may count against the agent's concurrent
// chats, two by default. If there is something to say to the customer, reply with it.
//
// A customer's cancel is noticed within about five seconds, and ends the task as [EndRejected].
type Handler interface {
	Handle(ctx context.Context, task *Task) (*Reply, error)
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, task *Task) (*Reply, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, task *Task) (*Reply, error) { return f(ctx, task) }

// A Task is one chat request that this provider has claimed: a conversation
// whose last message waits for a reply. A Task belongs to the handler that
// received it; only Progress may be called from other goroutines.
type Task struct {
	ID     string // the platform's delivery identifier
	ChatID string // the conversation, "" when the platform did not say

	// SessionID isolates this task: 64 hexadecimal digits that depend on the
	// platform, the provider and the task, and on nothing about the customer. Use it to
	// name fresh execution contexts, never as a user's identity. It is empty
	// in tasks that come from [Client.PollTask] and not from a [Worker].
	SessionID string

	Messages  []Message    // the whole conversation, oldest first
	FirstChat *bool        // whether the chat is new; nil when the platform did not say
	Amount    *usdc.Amount // what the customer pays; nil when the platform did not say

	// Deadline is when the platform stops waiting, on this machine's clock.
	// The zero time means that it is not known.
	Deadline time.Time

	// Resumed counts how often this task was handed to Config.Resume,
	// this time included. It is 0 in a task handed to the Handler.
	Resumed int

	// Raw is the task as the platform sent it, for fields this package does not know.
	Raw json.RawMessage

	progress *progressBox
}

// A Message is one turn of the conversation.
type Message struct {
	Role        string       // "system", "user", "assistant"; other values pass through
	Content     string       // text, may be empty beside attachments
	Attachments []Attachment // files that came with the message
	Raw         json.RawMessage
}

// An Attachment describes a file that a customer sent. Its URL is private and
// short-lived (ten minutes): fetch it promptly, without the provider key, and
// never log it. The file is untrusted input.
type Attachment struct {
	ID          string
	Name        string
	ContentType string
	Size        *int64 // bytes; nil when the platform did not say
	URL         string
}

// LastUserText returns the text of the last user message, or "" if there is none.
func (t *Task) LastUserText() string {
	for i := len(t.Messages) - 1; i >= 0; i-- {
		if t.Messages[i].Role == "user" {
			return t.Messages[i].Content
		}
	}
	return ""
}

// A Reply is what a handler produced. Text must be non-blank: at most
// [MaxReplyUnits] UTF-16 code units of valid UTF-8.
type Reply struct {
	Text  string
	Usage *Usage // nil: not measured
}

// Text returns a reply that consists of text alone.
func Text(text string) *Reply { return &Reply{Text: text} }

// Usage is what a reply cost the provider, as far as it was measured. A nil
// field was not measured, which is not zero.
type Usage struct {
	Model        string `json:"model,omitempty"`
	InputTokens  *int64 `json:"inputTokens,omitempty"`
	OutputTokens *int64 `json:"outputTokens,omitempty"`
}
