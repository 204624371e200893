package main

import (
	"context"
	"time"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

const (
	shortPause    = 300 * time.Millisecond
	shortDeadline = time.Second // of the rows in which the pause is longer
	longPause     = shortDeadline + shortPause
)

// pauseRows are a provider that is suspended with SIGSTOP and goes on with SIGCONT, as when a
// laptop sleeps or a machine is moved.
func pauseRows() []row {
	if !canSuspend {
		return nil
	}
	const group = "pause: "
	var rows []row
	for _, point := range []string{"after GET tasks", "after put claimed", "handler works", "after put saved", "before POST response", "after POST response", "after put ended"} {
		rows = append(rows, row{name: group + point, share: 5, play: suspended(point, shortPause, delivered)})
	}
	for _, point := range []string{"handler works", "before put saved", "before POST response"} {
		rows = append(rows, row{name: group + point + ", past the deadline", share: 5, deadline: shortDeadline, play: suspended(point, longPause, late)})
	}
	return append(rows,
		row{name: group + "over a poll that hands out a task", share: 5, play: pollSuspended(shortPause, delivered)},
		row{name: group + "over a poll that hands out a task, past the deadline", share: 5, deadline: shortDeadline, play: pollSuspended(longPause, late)},
		row{name: group + "while the platform takes the reply", share: 5, play: deliverySuspended},
		row{name: group + "handler works, then killed", share: 5, play: suspendedAndKilled("handler works", interrupted)},
		row{name: group + "after put saved, then killed", share: 5, play: suspendedAndKilled("after put saved", delivered)},
	)
}

// stop suspends a process for a while.
func stop(ctx context.Context, c *child, d time.Duration) error {
	if err := suspend(c.cmd.Process); err != nil {
		return err
	}
	if err := pause(ctx, d); err != nil {
		return err
	}
	return wake(c.cmd.Process)
}

func suspended(point string, d time.Duration, becomes fate) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if _, err := w.ask(becomes); err != nil {
			return err
		}
		c, err := w.holds(ctx, point)
		if err != nil {
			return err
		}
		if err := stop(ctx, c, d); err != nil {
			return err
		}
		return c.release()
	}
}

func pollSuspended(d time.Duration, becomes fate) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		c, err := w.start(ctx, moment{})
		if err != nil {
			return err
		}
		if err := c.await(ctx, "moment", "before GET tasks", ""); err != nil {
			return err
		}
		if err := pause(ctx, 25*time.Millisecond); err != nil { // the poll is under way
			return err
		}
		if err := suspend(c.cmd.Process); err != nil {
			return err
		}
		q, err := w.ask(becomes)
		if err != nil {
			return err
		}
		if err := q.WaitClaim(ctx); err != nil {
			return err
		}
		if err := pause(ctx, d); err != nil {
			return err
		}
		return wake(c.cmd.Process)
	}
}

// deliverySuspended suspends a provider while its reply is on the way: the answer waits for it.
func deliverySuspended(ctx context.Context, w *world) error {
	fault := w.fail(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.Slow, Delay: shortPause / 3, Times: 1})
	if _, err := w.ask(delivered); err != nil {
		return err
	}
	c, err := w.start(ctx, moment{})
	if err != nil {
		return err
	}
	if err := met(ctx, fault); err != nil {
		return err
	}
	return stop(ctx, c, shortPause)
}

func suspendedAndKilled(point string, becomes fate) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if _, err := w.ask(becomes); err != nil {
			return err
		}
		c, err := w.holds(ctx, point)
		if err != nil {
			return err
		}
		if err := suspend(c.cmd.Process); err != nil {
			return err
		}
		c.kill()
		w.running = nil
		return nil
	}
}
