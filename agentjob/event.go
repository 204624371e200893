package agentjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// EventKind names what happened.
type EventKind string

// The events of a worker's life.
const (
	EventReady         EventKind = "ready"          // Config.Ready succeeded: claiming starts or goes on
	EventNotReady      EventKind = "not_ready"      // Config.Ready failed
	EventHeartbeat     EventKind = "heartbeat"      // the platform took a heartbeat
	EventHeartbeatFail EventKind = "heartbeat_fail" // it did not
	EventPollFail      EventKind = "poll_fail"      // a poll, or at the start a look at the profile, failed; the next waits
	EventWatchFail     EventKind = "watch_fail"     // a look at a running task, or a progress report, failed
	EventClaimed       EventKind = "claimed"        // a task is recorded and will run
	EventDuplicate     EventKind = "duplicate"      // a known task was handed out again; it is not run again
	EventSaved         EventKind = "saved"          // a reply is recorded and will be delivered
	EventDeliveryRetry EventKind = "delivery_retry" // a delivery failed for now
	EventEnded         EventKind = "ended"          // Event.End says how
	EventCircuitOpen   EventKind = "circuit_open"   // a handler said Unavailable
	EventStoreFail     EventKind = "store_fail"     // a durable write failed; claiming stops until one works
	EventStoreOK       EventKind = "store_ok"       // and works again
	EventStuck         EventKind = "stuck"          // a function ignores its context
	EventPanic         EventKind = "panic"          // the release function of Config.Acquire panicked
	EventDraining      EventKind = "draining"       // claiming and beating ended
	EventStopped       EventKind = "stopped"        // Run returns; Err says why, nil after a clean drain
)

// An Event is one thing that happened to a worker. Fields that do not apply are zero.
type Event struct {
	Kind    EventKind
	At      time.Time
	AgentID string
	TaskID  string
	End     End           // of EventEnded
	Status  int           // HTTP status, where the platform answered
	Elapsed time.Duration // EventEnded: since the claim. EventHeartbeat: of the request
	Attempt int           // EventDeliveryRetry: deliveries tried so far
	Record  *Record       // EventEnded: what is recorded of the task, without its text
	Err     error         // why; may quote the conversation if it came from a handler
}

// levels gives the events that are not slog.LevelInfo.
var levels = map[EventKind]slog.Level{
	EventHeartbeat:     slog.LevelDebug,
	EventNotReady:      slog.LevelWarn,
	EventHeartbeatFail: slog.LevelWarn,
	EventPollFail:      slog.LevelWarn,
	EventWatchFail:     slog.LevelWarn,
	EventDuplicate:     slog.LevelWarn,
	EventDeliveryRetry: slog.LevelWarn,
	EventCircuitOpen:   slog.LevelWarn,
	EventStoreFail:     slog.LevelError,
	EventStuck:         slog.LevelError,
	EventPanic:         slog.LevelError,
}

// note logs an event.
func (w *Worker) note(e Event) {
	level := levels[e.Kind]
	if e.Kind == EventEnded && e.End != EndDelivered {
		level = slog.LevelWarn
	}
	if !w.cfg.Logger.Enabled(context.Background(), level) {
		return // at no cost
	}
	attrs := []slog.Attr{slog.String("agent", e.AgentID)}
	if e.TaskID != "" {
		attrs = append(attrs, slog.String("task", e.TaskID))
	}
	if e.End != "" {
		attrs = append(attrs, slog.String("end", string(e.End)))
	}
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	}
	if e.Elapsed != 0 {
		attrs = append(attrs, slog.Duration("elapsed", e.Elapsed))
	}
	if e.Attempt != 0 {
		attrs = append(attrs, slog.Int("attempt", e.Attempt))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", SafeText(e.Err)))
	}
	w.cfg.Logger.LogAttrs(context.Background(), level, "agentjob: "+string(e.Kind), attrs...)
}

// emit logs an event and hands it to Config.Observe.
func (w *Worker) emit(e Event) {
	e.At = time.Now()
	if api, ok := errors.AsType[*APIError](e.Err); ok && e.Status == 0 {
		e.Status = api.StatusCode
	}
	e.AgentID = w.status.agentID()
	w.note(e)
	defer func() {
		if v := recover(); v != nil {
			w.cfg.Logger.Error("agentjob: Config.Observe panicked", "event", string(e.Kind), "type", fmt.Sprintf("%T", v))
		}
	}()
	w.cfg.Observe(e)
}

// A foreignError comes from the user's code. Its text may quote the conversation,
// so logs and records show its type alone.
type foreignError struct{ err error }

func (e foreignError) Error() string { return e.err.Error() }
func (e foreignError) Unwrap() error { return e.err }

// foreign marks an error as the user's. It walks the error once, so that one whose
// methods panic does so here and not where nobody expects it.
func foreign(err error) error {
	if err == nil {
		return nil
	}
	_ = err.Error()
	_ = errors.Is(err, errStuck)
	return foreignError{err}
}

// SafeText describes an error of this package for logs and reports: without text that a handler,
// another function of the caller's or the platform wrote, which might quote the conversation.
func SafeText(err error) string {
	if err == nil {
		return ""
	}
	if f, ok := errors.AsType[foreignError](err); ok {
		return fmt.Sprintf("%T (its text is left out, it may quote the conversation; Config.Observe receives it)", f.err)
	}
	if api, ok := errors.AsType[*APIError](err); ok && api.Message != "" {
		silent := *api
		silent.Message = ""
		return silent.Error()
	}
	return err.Error()
}
