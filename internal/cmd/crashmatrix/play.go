package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// runLimit bounds one run. It is for what hangs; a run takes about a second.
const (
	runLimit  = time.Minute
	lookLimit = 20 * time.Second
)

var errHangs = errors.New("the run hangs")

// play runs a row once.
func (m *matrix) play(ctx context.Context, r row) (out verdict) {
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, errHangs)
	defer cancel()
	wrong := func(err error) {
		if err != nil {
			out.problems = append(out.problems, err.Error())
		}
	}
	w, err := m.newWorld(r)
	if err != nil {
		wrong(err)
		return out
	}
	defer func() { wrong(w.close()) }()
	if err = r.play(ctx, w); err == nil {
		err = w.aftermath(ctx)
	}
	wrong(err)
	w.killAll()
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
	defer cancel()
	all, err := w.evidence(looking)
	wrong(err)
	for i, e := range all {
		v := judge(e)
		if i == 0 {
			out.fate = v.fate
		}
		out.lost += v.lost
		out.duplicated += v.duplicated
		out.regenerated += v.regenerated
		for _, p := range v.problems {
			wrong(fmt.Errorf("task %d: %s", i+1, p))
		}
	}
	return out
}
