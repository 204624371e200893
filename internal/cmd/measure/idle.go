package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	idleWorkers = 1000
	// idleHold is how long the platform holds a poll here: short, so that there are many
	// to share the processor time out among.
	idleHold   = 2 * time.Second
	idleWindow = 4 * idleHold
)

// idle compares workers that wait for tasks with as many bare long polls, all in one
// process and on one HTTP/2 transport.
var idle = figure{
	name: "idleness",
	claims: []claim{
		{
			name: "idle/memory", unit: "KiB/worker", goal: goal{1.5, true, ""},
			compared: "1,000 bare long polls; the store's own is taken off",
			value:    per(minus(of("1000 workers", "memory"), of("nobody", "memory")), idleWorkers),
			ratio: beside(
				minus(of("1000 workers", "memory"), of("1000 leases", "memory")),
				minus(of("1000 bare polls", "memory"), of("nobody", "memory"))),
		},
		{
			name: "idle/goroutines", unit: "goroutines/worker", goal: goal{6, true, "goroutines/worker"}, compared: "nothing",
			value: per(minus(of("1000 workers", "goroutines"), of("nobody", "goroutines")), idleWorkers),
		},
		{
			name: "idle/cpu", unit: "us/poll", goal: goal{1.25, true, ""}, compared: "1,000 bare long polls",
			value: of("1000 workers", "cpu"), ratio: beside(of("1000 workers", "cpu"), of("1000 bare polls", "cpu")),
		},
		{
			name: "growth/idle-memory", unit: "KiB/worker", goal: linear, compared: "the lesser of 100 and 300 workers; value at 1,000",
			value: per(minus(of("1000 workers", "memory"), of("nobody", "memory")), 1000),
			ratio: beside(
				per(minus(of("1000 workers", "memory"), of("nobody", "memory")), 1000),
				least(
					per(minus(of("300 workers", "memory"), of("nobody", "memory")), 300),
					per(minus(of("100 workers", "memory"), of("nobody", "memory")), 100))),
		},
		{
			name: "growth/idle-cpu", unit: "us/poll", goal: linear, compared: "the lesser of 100 and 300 workers; value at 1,000",
			value: of("1000 workers", "cpu"),
			ratio: beside(of("1000 workers", "cpu"), least(of("300 workers", "cpu"), of("100 workers", "cpu"))),
		},
	},
	sides: []string{"1000 workers", "1000 bare polls", "1000 leases", "nobody", "100 workers", "300 workers"},
	set: func(ctx context.Context, b *bench) (map[string]measure, func() error, error) {
		s, err := newSite(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		if err := s.platform.call(ctx, "Hold", idleHold, &None{}); err != nil {
			return nil, nil, errors.Join(err, s.platform.stop())
		}
		return map[string]measure{
			"nobody":          s.idles(nobody, 0, 0),
			"1000 bare polls": s.idles(polls, idleWorkers, idleWindow),
			"1000 leases":     s.idles(leases, idleWorkers, 0),
			"100 workers":     s.idles(workers, 100, idleWindow),
			"300 workers":     s.idles(workers, 300, idleWindow),
			"1000 workers":    s.idles(workers, idleWorkers, idleWindow),
		}, s.platform.stop, nil
	},
}

// idles measures a crowd in a process of its own. Its processor time is taken over the window,
// if there is one, and after the start.
func (s *site) idles(kind string, size int, window time.Duration) measure {
	return func(ctx context.Context) (out sample, err error) {
		dir, err := s.folder()
		if err != nil {
			return nil, err
		}
		crowd, err := startChild(ctx, "Idler")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, crowd.stop(), os.RemoveAll(dir)) }()
		if _, err := s.prepare(ctx, Batch{}); err != nil {
			return nil, err
		}
		if err := crowd.call(ctx, "Start", Crowd{kind, size, s.url, dir}, &None{}); err != nil {
			return nil, err
		}
		polling := window > 0
		if polling {
			if err := s.platform.call(ctx, "AwaitEmpty", 2*size, &None{}); err != nil {
				return nil, err // after two polls each the start is over
			}
		}
		var before, after int
		var idleness Idleness
		if err := errors.Join(
			s.platform.call(ctx, "Empty", None{}, &before),
			crowd.call(ctx, "Measure", window, &idleness),
			s.platform.call(ctx, "Empty", None{}, &after),
		); err != nil {
			return nil, err
		}
		out = sample{"goroutines": float64(idleness.Goroutines)}
		if idleness.Private != nil {
			out["memory"] = float64(*idleness.Private) / 1024
		}
		if idleness.Processor != nil && polling {
			if after == before {
				return nil, fmt.Errorf("no poll in %v", window)
			}
			out["cpu"] = float64(idleness.Processor.Microseconds()) / float64(after-before)
		}
		return out, nil
	}
}
