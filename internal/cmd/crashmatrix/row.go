package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// A row is one thing that happens to a provider, run several times.
type row struct {
	name        string
	share       int                                            // it is run a share of -runs: 0 and 1 are all, 5 a fifth
	play        func(context.Context, *world) error            // up to the aftermath
	check       func(*world, map[string]agentjob.Record) error // of the records that are left; may be nil
	deadline    time.Duration                                  // of tasks on the platform; 0: its default
	resumes     bool                                           // Config.Resume is set
	unforgiving bool                                           // the platform takes a repeated reply as a second message
	window      bool                                           // and the provider can't know better than to repeat
}

func (r row) runs(n int) int { return (n + max(r.share, 1) - 1) / max(r.share, 1) }

// A tally is a row with its counts.
type tally struct {
	row
	runs        int
	fates       map[fate]int
	lost        int
	duplicated  int
	excused     int // duplicates in the window, which only the platform closes
	regenerated int
	problems    []string
}

func (t *tally) add(o verdict) {
	if t.fates == nil {
		t.fates = map[fate]int{}
	}
	t.runs++
	t.fates[o.fate]++
	t.lost += o.lost
	t.regenerated += o.regenerated
	if t.unforgiving && t.window {
		t.excused += o.duplicated
	} else {
		t.duplicated += o.duplicated
		if o.duplicated > 0 {
			o.problems = append(o.problems, fmt.Sprintf("the customer has %d messages too many", o.duplicated))
		}
	}
	for _, p := range o.problems {
		t.problems = append(t.problems, fmt.Sprintf("run %d: %s", t.runs, p))
	}
}

func (t *tally) ok() bool { return t.lost+t.duplicated+t.regenerated+len(t.problems) == 0 }

const rowFormat = "%-74s %5v %9v %11v %10v %5v %5v %10v %11v  %s"

func header() string {
	return fmt.Sprintf(rowFormat, "", "runs", "delivered", "interrupted", "unrecorded", "late", "lost", "duplicated", "regenerated", "")
}

func (t *tally) String() string {
	state, duplicated := "ok", fmt.Sprint(t.duplicated)
	if !t.ok() {
		state = "NOT OK"
	}
	if t.excused > 0 {
		duplicated = fmt.Sprintf("%d*", t.excused)
	}
	return strings.TrimRight(fmt.Sprintf(rowFormat, t.name, t.runs, t.fates[delivered], t.fates[interrupted], t.fates[unrecorded],
		t.fates[late], t.lost, duplicated, t.regenerated, state), " ")
}
