package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// refusalLimit is how soon a second worker on one state must know that it is one.
const refusalLimit = 2 * time.Second

// workerRows are two workers on one state.
func workerRows() []row {
	const group = "two workers: "
	rows := []row{
		{name: group + "the second is refused, the first serves on", share: 5, play: secondRefused},
		{name: group + "both start at once, one serves", share: 5, play: bothAtOnce},
		{name: group + "the first is killed, the next delivers what it saved", share: 5, play: nextTakesOver},
	}
	if canSuspend {
		rows = append(rows, row{name: group + "the first is suspended, and the second still refused", share: 5, play: suspendedHolds})
	}
	return rows
}

// second starts another worker beside the one that serves, and waits until it has been refused.
func (w *world) second(ctx context.Context) error {
	first := w.running
	defer func() { w.running = first }()
	c, err := w.start(ctx, moment{})
	if err != nil {
		return err
	}
	took, err := c.refused(ctx)
	if err == nil && took > refusalLimit {
		err = fmt.Errorf("the second worker was refused after %v, the promise is %v", took, refusalLimit)
	}
	return err
}

func secondRefused(ctx context.Context, w *world) error {
	if _, err := w.serve(ctx); err != nil {
		return err
	}
	if err := w.second(ctx); err != nil {
		return err
	}
	return w.answered(ctx)
}

func bothAtOnce(ctx context.Context, w *world) error {
	one, err := w.start(ctx, moment{})
	if err != nil {
		return err
	}
	other, err := w.start(ctx, moment{})
	if err != nil {
		return err
	}
	var loser *child
	select {
	case <-one.ended:
		loser, w.running = one, other
	case <-other.ended:
		loser, w.running = other, one
	case <-ctx.Done():
		return errors.New("neither was refused")
	}
	if _, err := loser.refused(ctx); err != nil {
		return err
	}
	return w.answered(ctx)
}

func nextTakesOver(ctx context.Context, w *world) error {
	fault := w.fail(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 503})
	if _, err := w.ask(delivered); err != nil {
		return err
	}
	first, err := w.serve(ctx)
	if err != nil {
		return err
	}
	if err := met(ctx, fault); err != nil {
		return err
	}
	if err := w.second(ctx); err != nil {
		return err
	}
	first.kill()
	fault.Clear()
	_, err = w.serve(ctx)
	return err
}

func suspendedHolds(ctx context.Context, w *world) error {
	first, err := w.serve(ctx)
	if err != nil {
		return err
	}
	if err := suspend(first.cmd.Process); err != nil {
		return err
	}
	if err := w.second(ctx); err != nil {
		return err
	}
	if err := wake(first.cmd.Process); err != nil {
		return err
	}
	return w.answered(ctx)
}
