package main

import (
	"context"
	"errors"
	"time"
)

// start tells how long after the call of Run the platform has the first heartbeat.
var start = figure{
	name: "start",
	claims: []claim{
		{name: "start/first", unit: "ms", compared: "nothing: a new store, the profile is asked for first", goal: goal{50, true, "ms"}, value: of("worker", "first")},
		{name: "start/again", unit: "ms", compared: "nothing: the same store", goal: goal{50, true, "ms"}, value: of("worker", "again")},
	},
	sides: []string{"worker"},
	set: func(ctx context.Context, b *bench) (map[string]measure, func() error, error) {
		s, err := newSite(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		return map[string]measure{"worker": s.measureStart}, s.platform.stop, nil
	},
}

func (s *site) measureStart(ctx context.Context) (out sample, err error) {
	store, err := s.newShelf()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	out = sample{}
	for _, what := range []string{"first", "again"} {
		if _, err := s.prepare(ctx, Batch{}); err != nil {
			return nil, err
		}
		began := time.Now()
		p, err := s.startWorker(store, 1, noop)
		if err != nil {
			return nil, err
		}
		var beat time.Time
		err = s.platform.call(ctx, "AwaitBeat", None{}, &beat)
		if err = errors.Join(err, p.stop()); err != nil {
			return nil, err
		}
		out[what] = milliseconds(beat.Sub(began))
	}
	return out, s.awaitHeld(ctx, 0)
}
