package main

import (
	"context"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

const days = 24 * time.Hour

// clockRows are clocks that jump: the platform's, while a provider runs and between two; and the
// provider's machine's between two, which is the same as records of another time.
func clockRows() (rows []row) {
	type jump struct {
		name string
		by   time.Duration
		// what becomes of a task over which the platform's clock jumps, once claimed and once saved
		claimed, saved fate
	}
	for _, j := range []jump{
		{"an hour forward", time.Hour, interrupted, late},
		{"3 days forward", 3 * days, interrupted, late},
		{"an hour back", -time.Hour, interrupted, delivered},
		{"3 days back", -3 * days, interrupted, delivered},
	} {
		group := "clock: the platform's " + j.name + " "
		rows = append(rows,
			row{name: group + "while the handler works", share: 5, play: jumpsInHandler(j.by, j.saved)},
			row{name: group + "while a reply waits", share: 5, play: jumpsInDelivery(j.by, j.saved)},
			row{name: group + "after a crash with a claimed task", share: 5, play: jumpsBetween("handler works", j.by, j.claimed)},
			row{name: group + "after a crash with a saved reply", share: 5, play: jumpsBetween("after put saved", j.by, j.saved)},
		)
		group = "clock: the provider's " + j.name + " "
		rows = append(rows,
			row{name: group + "after a crash with a claimed task", share: 5, play: shiftsBetween("handler works", j.by, interrupted)},
			row{name: group + "after a crash with a saved reply", share: 5, play: shiftsBetween("after put saved", j.by, delivered)},
			row{name: group + "after a crash after the delivery", share: 5, play: shiftsBetween("after POST response", j.by, delivered)},
		)
	}
	return rows
}

func jumpsInHandler(by time.Duration, becomes fate) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if _, err := w.ask(becomes); err != nil {
			return err
		}
		c, err := w.holds(ctx, "handler works")
		if err != nil {
			return err
		}
		w.clock.jump(by)
		return c.release()
	}
}

func jumpsInDelivery(by time.Duration, becomes fate) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		fault := w.fail(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 503})
		if _, err := w.ask(becomes); err != nil {
			return err
		}
		if _, err := w.start(ctx, moment{}); err != nil {
			return err
		}
		if err := met(ctx, fault); err != nil {
			return err
		}
		w.clock.jump(by)
		return nil
	}
}

func jumpsBetween(point string, by time.Duration, becomes fate) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if err := crashes(are(becomes), moment{Name: point})(ctx, w); err != nil {
			return err
		}
		w.clock.jump(by)
		return nil
	}
}

func shiftsBetween(point string, by time.Duration, becomes fate) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if err := crashes(are(becomes), moment{Name: point})(ctx, w); err != nil {
			return err
		}
		return withRecords(ctx, w.m.store, w.dir, w.agent.ID, func(l agentjob.Lease, records map[string]agentjob.Record) error {
			for _, rec := range records {
				for _, at := range []*time.Time{&rec.ClaimedAt, &rec.SavedAt, &rec.Deadline} {
					if !at.IsZero() {
						*at = at.Add(-by)
					}
				}
				if err := l.Put(ctx, rec); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
