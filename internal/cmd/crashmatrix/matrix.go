package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/agentjob/agentjob-go/agentjob"
)

// A matrix runs rows.
type matrix struct {
	runs        int            // of a row
	parallel    int            // runs at once
	store       string         // the providers' kind
	dir         string         // for their states
	sabotage    agentjob.State // see orders
	unforgiving bool           // sabotage of the platform: it is so in rows that are not
}

// maxTold bounds the problems that are printed of a row.
const maxTold = 3

// maxBad ends a matrix early. A worker that is broken at its root never reaches most points, and each row would
// wait for it in vain.
const maxBad = 10

// run runs rows and prints each when it and those before it are done, and why it is not ok to problems. It
// returns early when ctx ends.
func (m *matrix) run(ctx context.Context, rows []row, out, problems io.Writer) (all []*tally, err error) {
	type job struct {
		row     row
		results chan verdict
	}
	var jobs []job
	results := make([]chan verdict, len(rows))
	for i, r := range rows {
		n := r.runs(m.runs)
		results[i] = make(chan verdict, n)
		for range n {
			jobs = append(jobs, job{r, results[i]})
		}
	}
	queue := make(chan job)
	var playing sync.WaitGroup
	defer playing.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range m.parallel {
		playing.Go(func() {
			for j := range queue {
				j.results <- m.play(ctx, j.row)
			}
		})
	}
	playing.Go(func() {
		defer close(queue)
		for _, j := range jobs {
			select {
			case queue <- j:
			case <-ctx.Done():
				return
			}
		}
	})
	if _, err := fmt.Fprintln(out, header()); err != nil {
		return nil, err
	}
	bad := 0
	for i, r := range rows {
		if bad == maxBad {
			return all, fmt.Errorf("%d rows are not ok, which is enough to look into", bad)
		}
		t := &tally{row: r}
		for range cap(results[i]) {
			select {
			case o := <-results[i]:
				t.add(o)
			case <-ctx.Done():
				return all, context.Cause(ctx)
			}
		}
		all = append(all, t)
		if !t.ok() {
			bad++
		}
		if _, err := fmt.Fprintln(out, t); err != nil {
			return all, err
		}
		for n, p := range t.problems {
			if n == maxTold {
				_, _ = fmt.Fprintf(problems, "  %s: and %d more\n", r.name, len(t.problems)-n)
				break
			}
			_, _ = fmt.Fprintf(problems, "  %s: %s\n", r.name, p)
		}
	}
	return all, nil
}

// conclude prints the last lines and reports whether every promise was kept.
func conclude(all []*tally, out io.Writer) (kept bool) {
	var sum tally
	var window, bad int
	for _, t := range all {
		sum.lost += t.lost
		sum.duplicated += t.duplicated
		sum.regenerated += t.regenerated
		sum.excused += t.excused
		if t.unforgiving && t.window {
			window += t.runs
		}
		if !t.ok() {
			bad++
		}
	}
	if window > 0 {
		_, _ = fmt.Fprintf(out, windowText, sum.excused, window)
	}
	if bad > 0 {
		_, _ = fmt.Fprintf(out, "%d of %d rows are not ok\n", bad, len(all))
	}
	_, _ = fmt.Fprintf(out, "lost=%d duplicated=%d regenerated=%d\n", sum.lost, sum.duplicated, sum.regenerated)
	return bad == 0
}

const windowText = `* Without response idempotency: %d second messages in %d runs of the rows that hit one window: the platform has
  accepted the reply, and the record of that is not on disk yet, or its answer was lost. A provider can't tell this from
  a reply that never arrived, and sends the same bytes again; only a platform that knows a repeat closes the window, as
  AgentJob's guide says it does. They are not in the line below; a second message anywhere else is.
`
