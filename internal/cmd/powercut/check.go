package main

import (
	"context"
	"fmt"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// Options say how much is looked at.
type options struct {
	tasks  int // of the recorded provider
	states int // that are rebuilt, about; 0: all
	seed   uint64
	faults []string // that strace injects into the recorded provider
}

// restartEvery is how many states are judged by their records alone for one in which the worker is started, too.
const restartEvery = 20

// A row is a line of the report.
type row struct {
	store, name string
	tally
}

// check records a provider and judges every power cut of it.
func check(ctx context.Context, k kind, o options) ([]row, error) {
	w := newWorld()
	defer w.close()
	recording, err := record(ctx, w, k, o.tasks, o.faults)
	if err != nil {
		return nil, err
	}
	return recording.check(ctx, o)
}

func (r *recording) check(ctx context.Context, o options) ([]row, error) {
	chosen, err := r.plan(o.states, o.seed)
	if err != nil {
		return nil, err
	}
	// All tasks are over on the platform, which would tell a restarted worker so before it ran one again.
	r.platform.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Kind: agentjobtest.Answer})
	l := newLooker(r)
	order := row{store: r.kind.name, name: "order"}
	restarts := row{store: r.kind.name, name: "restart"}
	rows := make([]row, len(variants))
	seen := 0
	err = r.moments(func(m moment) error {
		if m.mark != nil && needs[m.mark.what].what != "" {
			order.states++
			if text := early(*m.mark, m.disk); text != "" {
				order.count(&order.early, "%s", text)
			}
		}
		for v, variant := range variants {
			rows[v].store, rows[v].name = r.kind.name, variant.name
			s := state{m.step, v}
			if !chosen[s] {
				continue
			}
			image := m.disk.Image(variant.fates(s.random(o.seed), m.disk.Pending()))
			f, err := l.look(ctx, image)
			if err != nil {
				return err
			}
			at := func(t tally) tally {
				for i, text := range t.texts {
					t.texts[i] = fmt.Sprintf("%s, power cut after line %d, %s: %s", r.kind.name, r.steps[m.step].Line, variant.name, text)
				}
				return t
			}
			rows[v].add(at(l.judge(f, m.expected)))
			if seen++; seen%restartEvery != 0 || f.err != nil {
				continue
			}
			t, err := l.restart(ctx, image, f, m.expected)
			if err != nil {
				return fmt.Errorf("power cut after line %d, %s: %w", r.steps[m.step].Line, variant.name, err)
			}
			restarts.add(at(t))
		}
		return nil
	})
	return append([]row{order}, append(rows, restarts)...), err
}
