package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentjob/agentjob-go/agentjob"
)

// aftermath is the same for every row: all is well again, a provider runs to a good end,
// tasks that it knows are handed out again, and a new one is answered.
func (w *world) aftermath(ctx context.Context) (err error) {
	for _, f := range w.faults {
		f.Clear()
	}
	c := w.running
	if c == nil {
		if c, err = w.serve(ctx); err != nil {
			return err
		}
	}
	for _, q := range w.asked {
		if q.Counts().Claims > 0 {
			continue
		}
		if _, err := q.WaitReply(ctx); err != nil {
			return fmt.Errorf("wait for the reply to a task that was never claimed before: %w: %w", err, c.story())
		}
	}
	earlier := slices.Clone(w.asked)
	if err := w.answered(ctx); err != nil {
		return err
	}
	again := slices.DeleteFunc(earlier, func(q question) bool { return !w.recorded(q) })
	if len(again) == 0 { // each costs the provider's back-off, so one is enough
		again = w.asked[len(w.asked)-1:]
	}
	for _, q := range again {
		if err := w.handOutAgain(ctx, c, q); err != nil {
			return err
		}
	}
	c.drain()
	return c.drained(ctx)
}

// answered asks the provider that serves, and waits for the reply.
func (w *world) answered(ctx context.Context) error {
	q, err := w.ask(delivered)
	if err != nil {
		return err
	}
	if _, err := q.WaitReply(ctx); err != nil {
		return fmt.Errorf("wait for a reply: %w: it is %s, %+v: %w", err, q.Status(), q.Counts(), w.running.story())
	}
	return nil
}

// recorded reports whether a provider was told that the task is on disk, or has found it there.
func (w *world) recorded(q question) bool {
	return slices.ContainsFunc(w.lines(), func(l line) bool {
		return (l.verb == "put" || l.verb == "known") && l.subject == q.ID
	})
}

// handOutAgain has the platform hand out a recorded task. The provider must call that a duplicate.
func (w *world) handOutAgain(ctx context.Context, c *child, q question) error {
	from := len(c.told.all())
	w.platform.HandOutAgain(q.ID)
	_, err := c.awaitLine(ctx, from, func(l line) bool {
		return l == line{"event", q.ID, string(agentjob.EventDuplicate)} || l.verb == "handle" && l.subject == q.ID
	})
	if err != nil {
		return fmt.Errorf("wait for a task that is handed out again to be called a duplicate: %w", err)
	}
	return nil
}
