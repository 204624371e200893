package agentjob

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// A Store keeps the records of one or more providers through crashes and
// restarts. Implementations are safe for concurrent use; the suite in
// agentjob/storetest tests every sentence of this file.
//
// The package boltstore is the default. A store seals the parts of a record
// that hold chat text ([EncodeRecord] does it).
type Store interface {
	// Acquire takes the lease of a provider, the agent id that all its
	// records belong to. At most one lease of a provider is open at a time, on all
	// machines that share the store; while another holds it Acquire returns an error
	// that matches [ErrLeaseHeld], within two seconds. The lease lives until Close
	// or Lost, not until ctx ends.
	Acquire(ctx context.Context, provider string) (Lease, error)

	// Provider returns the provider last bound to a key's fingerprint, or ""
	// if there is none. It lets a worker start while the platform can't be
	// reached. It needs no lease.
	Provider(ctx context.Context, fingerprint string) (string, error)

	// BindProvider durably binds a key's fingerprint to a provider.
	BindProvider(ctx context.Context, fingerprint, provider string) error
}

// A Lease is the exclusive right to a provider's records. Its methods may be
// called concurrently. After Lost is closed, or after Close, Put and Delete
// change nothing and return an error that matches [ErrLeaseLost].
type Lease interface {
	// Records yields every record of the provider, in no particular order,
	// as of one moment at or after the call: all earlier Puts and Deletes show.
	// A record that can't be read yields an error and ends the iteration.
	Records(ctx context.Context) iter.Seq2[Record, error]

	// Put inserts or replaces the record with the same TaskID. The record's Provider
	// must be the lease's; times are kept to the nanosecond, in UTC. It returns
	// when the record would survive a power cut, except that for a record in
	// [StateEnded] it may return earlier: such a write may be lost in a crash, never reordered
	// before an earlier one, and is on disk after Close. On an error the old record
	// is still there. If ctx ends first the outcome is unknown: the write may or may
	// not happen.
	Put(ctx context.Context, rec Record) error

	// Delete removes a record; an absent one is no error. Like an ended
	// record it may become durable later, and it works on a full disk.
	Delete(ctx context.Context, taskID string) error

	// Lost is closed when the lease was taken away or can't be kept. A
	// store whose leases can't be lost returns a channel that is never closed.
	Lost() <-chan struct{}

	// Close makes everything durable and gives the lease up. It may be called
	// again, then doing nothing.
	Close() error
}

// State says how far a task is, as recorded on disk.
type State string

// The durable states.
const (
	StateClaimed State = "claimed" // the handler may have started
	StateSaved   State = "saved"   // a finished reply waits to be delivered
	StateEnded   State = "ended"   // nothing is left to do; see [End]
)

// transitions is the whole life of a record. The empty state is "no record".
var transitions = map[State][]State{
	"":           {StateClaimed},
	StateClaimed: {StateClaimed, StateSaved, StateEnded}, // claimed again: a Resume is counted
	StateSaved:   {StateEnded},
	StateEnded:   {StateEnded}, // the reply's text is dropped when its retention is over
}

// CanBecome reports whether a record in state s may be replaced by one in
// state next. The empty state stands for no record.
func (s State) CanBecome(next State) bool { return slices.Contains(transitions[s], next) }

// End says how a task ended.
type End string

// The ends of a task.
const (
	EndDelivered   End = "delivered"   // the platform accepted the reply
	EndRejected    End = "rejected"    // refused for good: by the platform (Record.Status tells), a cancel, or the limits it sets
	EndExpired     End = "expired"     // the deadline passed first
	EndFailed      End = "failed"      // the handler returned an error or panicked; nothing was sent
	EndInterrupted End = "interrupted" // a crash or hard stop came before the reply was saved
)

// A Record is what a [Store] keeps of one task. The fields up to Content are the
// envelope, readable by the operator; Content is sealed.
type Record struct {
	Provider  string    `json:"provider"`
	TaskID    string    `json:"taskId"`
	ChatID    string    `json:"chatId,omitempty"`
	State     State     `json:"state"`
	ClaimedAt time.Time `json:"claimedAt"`
	SavedAt   time.Time `json:"savedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Deadline  time.Time `json:"deadline,omitzero"` // zero: never learnt
	Resumed   int       `json:"resumed,omitempty"` // times handed to Config.Resume

	Amount *usdc.Amount `json:"amount,omitempty"` // as the task stated it; nil: it did not

	End    End    `json:"end,omitempty"`
	Status int    `json:"status,omitempty"` // HTTP status of a rejection; 0: not the platform's answer
	Reason string `json:"reason,omitempty"` // why it ended so, without chat text

	Content Content `json:"-"`
}

// Content is the part of a record that may hold chat text. Stores seal it.
type Content struct {
	Task     json.RawMessage `json:"task,omitempty"`     // as claimed; kept only for Config.Resume
	Response []byte          `json:"response,omitempty"` // the exact bytes to send, once saved
	Usage    *Usage          `json:"usage,omitempty"`
}

// ReplyText returns the text of the reply as it is sent, or "" if none is kept.
func (r Record) ReplyText() string {
	if r.Content.Response == nil {
		return ""
	}
	return replyText(r.Content.Response)
}

// withoutText returns what may be kept of content when its text must go.
func (c Content) withoutText() Content { return Content{Usage: c.Usage} }

// hasText reports whether there is any of the conversation or the reply.
func (c Content) hasText() bool { return c.Task != nil || c.Response != nil }

// IsZero reports whether there is nothing to seal.
func (c Content) IsZero() bool { return c.Task == nil && c.Response == nil && c.Usage == nil }
