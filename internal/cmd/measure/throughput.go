package main

import (
	"context"
	"fmt"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

const (
	batchTasks = 1000 // of one side of a round: enough for a p99
	batchTalk  = 3    // messages in a conversation
)

// throughput compares the worker with the bare loop while there is always a task.
func throughput(concurrency int) figure {
	const ours, plain = "worker", "bare loop"
	beats := goal{limit: 0.8}
	compared := fmt.Sprintf("bare loop of %d, same calls and commits", concurrency)
	row := func(name, unit, what string, x, y string) claim {
		return claim{
			name: fmt.Sprintf("%s/%d", name, concurrency), unit: unit, compared: compared, goal: beats,
			value: of(ours, what), ratio: beside(of(x, what), of(y, what)),
		}
	}
	return figure{
		name: fmt.Sprintf("throughput at concurrency %d", concurrency),
		claims: []claim{
			row("tasks", "tasks/s", "rate", ours, plain),
			row("latency-p50", "ms", "p50", plain, ours), // less is better: how many times ours the bare loop takes
			row("latency-p99", "ms", "p99", plain, ours),
		},
		sides: []string{ours, plain},
		set: func(ctx context.Context, b *bench) (map[string]measure, func() error, error) {
			s, err := newSite(ctx, b)
			if err != nil {
				return nil, nil, err
			}
			batch := Batch{Tasks: batchTasks, Messages: batchTalk}
			return map[string]measure{
				ours: s.serves(batch, s.worker(concurrency, noop)),
				plain: s.serves(batch, func(store *shelf) (*party, error) {
					return s.startBare(store, concurrency)
				}),
			}, s.platform.stop, nil
		},
	}
}

// parallel compares the worker with itself when answering takes a while.
var parallel = figure{
	name: "a handler that waits",
	claims: []claim{{
		name: "parallel/5", unit: "tasks/s", compared: "concurrency 1, handler of 20 ms", goal: goal{limit: 3},
		value: of("five", "rate"), ratio: beside(of("five", "rate"), of("one", "rate")),
	}},
	sides: []string{"five", "one"},
	set: func(ctx context.Context, b *bench) (map[string]measure, func() error, error) {
		s, err := newSite(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		waiting := func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			return noop(ctx, task)
		}
		batch := Batch{Tasks: 100, Messages: batchTalk}
		return map[string]measure{
			"five": s.serves(batch, s.worker(5, waiting)),
			"one":  s.serves(batch, s.worker(1, waiting)),
		}, s.platform.stop, nil
	},
}

// conversations shows what a task costs by the length of its conversation.
var conversations = figure{
	name: "growth by conversation",
	claims: []claim{{
		name: "growth/conversation", unit: "us/message", compared: "the lesser of 100 and 1,000 messages; value at 10,000", goal: linear,
		value: of("10000", "each"), ratio: beside(of("10000", "each"), least(of("100", "each"), of("1000", "each"))),
	}},
	sides: []string{"100", "1000", "10000"},
	set: func(ctx context.Context, b *bench) (map[string]measure, func() error, error) {
		s, err := newSite(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		sides := map[string]measure{}
		for name, batch := range map[string]Batch{
			"100": {Tasks: 100, Messages: 100}, "1000": {Tasks: 40, Messages: 1000}, "10000": {Tasks: 10, Messages: 10_000},
		} {
			serve := s.serves(batch, s.worker(1, noop))
			sides[name] = func(ctx context.Context) (sample, error) {
				out, err := serve(ctx)
				if err != nil {
					return nil, err
				}
				return sample{"each": 1e6 / out["rate"] / float64(batch.Messages)}, nil
			}
		}
		return sides, s.platform.stop, nil
	},
}

// linear is the goal of growth: what one costs at the largest of three sizes, beside the
// least that it costs at a smaller one. More than 1 is worse than linear; the rest is noise.
var linear = goal{limit: 1.25, most: true}
