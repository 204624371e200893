package agentjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Config says what a [Worker] runs and how. Client, Handler and Store are
// required; every other field's zero value is a sensible default. NewWorker
// copies it.
type Config struct {
	Client  *Client // with a provider key
	Handler Handler
	Store   Store // keeps records through crashes; boltstore.Open makes the default one

	// AttachmentTypes are the MIME types of customers' files that Handler
	// can read. They are announced with every heartbeat and poll; without
	// them no message with a file is handed out. Declare only what works.
	AttachmentTypes []string
	ServiceRevision string       // optional version of the service, 1-128 of A-Z a-z 0-9 . _ -
	RuntimeInfo     *RuntimeInfo // optional declaration of framework and model

	// Ready reports whether a task could be answered now. While it returns an
	// error nothing is claimed and no heartbeat is sent. It is called before every
	// heartbeat, never twice at once, with ten seconds to answer. Nil: always ready.
	Ready func(context.Context) error

	// Resume receives tasks whose run was cut off by a crash or a stop, until
	// their deadline. Task.Resumed tells how often. The worker does not know how far the
	// earlier run came: Resume must. Nil: such tasks are only reported. The
	// conversation is written to the store only if Resume is set.
	Resume HandlerFunc

	// Acquire is called before every claim and gets capacity that the task
	// will need; the worker calls release once when the task has run, or when nothing was
	// claimed. Nil: capacity is Concurrency alone.
	Acquire func(context.Context) (release func(), err error)

	Concurrency int           // tasks run at once, 1-5; default 1
	Backlog     int           // saved replies that wait for delivery at which claiming stops; default 100
	PollWait    time.Duration // how long the platform may hold a poll, 1-60 s; default 25 s

	DrainTimeout time.Duration // from drain to stop; default 30 s
	StuckGrace   time.Duration // for a function to return after its context is done; default 10 s

	// Retention is how long the text of a reply that was refused, or came too late, is kept
	// for the operator. Default 7 days. The text of a delivered reply is dropped at once.
	Retention time.Duration

	// Observe receives every event of the worker's life, from several
	// goroutines, and must return quickly. It may see errors of the handler, which may quote
	// the conversation; the log never does.
	Observe func(Event)
	Logger  *slog.Logger // ids, states, statuses, durations; nil: silent
}

const (
	defaultBacklog      = 100
	defaultPollWait     = 25 * time.Second
	defaultDrainTimeout = 30 * time.Second
	defaultStuckGrace   = 10 * time.Second
	defaultRetention    = 7 * 24 * time.Hour
	maxConcurrency      = 5 // the platform's maxConcurrentChats
)

// withDefaults returns c complete, or an error that names every wrong field.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &ValidationError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	switch {
	case c.Client == nil:
		wrong("Client", "is required: make one with NewClient")
	case c.Client.key.IsZero():
		wrong("Client", "has no APIKey: a worker needs the provider key")
	}
	if c.Handler == nil {
		wrong("Handler", "is required: it makes the replies")
	}
	if c.Store == nil {
		wrong("Store", "is required: it keeps replies through crashes; boltstore.Open makes one")
	}
	if err := (Heartbeat{AttachmentTypes: c.AttachmentTypes, ServiceRevision: c.ServiceRevision, RuntimeInfo: c.RuntimeInfo}).validate(); err != nil {
		errs = append(errs, err)
	}
	defaulted := func(field string, value *int, def, low, high int) {
		if *value == 0 {
			*value = def
		}
		if *value < low || *value > high {
			wrong(field, "is %d, must be %d to %d", *value, low, high)
		}
	}
	defaulted("Concurrency", &c.Concurrency, 1, 1, maxConcurrency)
	defaulted("Backlog", &c.Backlog, defaultBacklog, 1, 1_000_000)
	duration := func(field string, value *time.Duration, def, low, high time.Duration) {
		if *value == 0 {
			*value = def
		}
		if *value < low || *value > high {
			wrong(field, "is %v, must be %v to %v", *value, low, high)
		}
	}
	duration("PollWait", &c.PollWait, defaultPollWait, time.Second, 60*time.Second)
	duration("DrainTimeout", &c.DrainTimeout, defaultDrainTimeout, 1, 24*time.Hour)
	duration("StuckGrace", &c.StuckGrace, defaultStuckGrace, 1, time.Hour)
	duration("Retention", &c.Retention, defaultRetention, 1, 10*365*24*time.Hour)
	c.AttachmentTypes = slices.Clone(c.AttachmentTypes)
	if c.RuntimeInfo != nil {
		c.RuntimeInfo = new(*c.RuntimeInfo)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) error { return nil }
	}
	return c, errors.Join(errs...)
}
