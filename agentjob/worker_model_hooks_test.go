package agentjob_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// springs reports whether a trap for this moment closes, which kills the process. x.mu is held.
func (l *life) springs(do, how string, state agentjob.State, route agentjobtest.Route) bool {
	for i, s := range l.x.traps {
		if s.Do != do || s.How != how || s.State != state || s.Route != route {
			continue
		}
		if s.Skip > 0 {
			l.x.traps[i].Skip--
			continue
		}
		l.x.traps = append(l.x.traps[:i:i], l.x.traps[i+1:]...)
		l.crash()
		return true
	}
	return false
}

// goes reports how something goes, after the waiting that belongs to it: an error, or that it goes
// well. A trouble that hangs lets go when it or ctx is over.
func (l *life) goes(ctx context.Context, what int, state agentjob.State) (how string, err error) {
	l.x.mu.Lock()
	t := l.x.trouble[what]
	l.x.mu.Unlock()
	if t.state != "" && t.state != state {
		return "", nil
	}
	switch t.how {
	case "fail":
		return t.how, errTrouble
	case "panic":
		panic(errTrouble)
	case "deaf":
		<-t.over
	case "slow":
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
			return t.how, ctx.Err()
		}
	case "hang", "hang, then write":
		select {
		case <-t.over:
		case <-ctx.Done():
			return t.how, ctx.Err()
		}
	}
	return "", nil
}

// A disk is the store as one life sees it.
type disk struct {
	*agentjobtest.Store
	life *life
}

type diskLease struct {
	agentjob.Lease
	life *life
}

func (d disk) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := d.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	d.life.x.mu.Lock()
	d.life.holds = true
	d.life.x.mu.Unlock()
	return diskLease{lease, d.life}, nil
}

func (d disk) BindProvider(ctx context.Context, fingerprint, provider string) error {
	if _, err := d.life.goes(ctx, storeTrouble, ""); err != nil {
		d.life.wrote(err, false)
		return err
	}
	err := d.Store.BindProvider(ctx, fingerprint, provider)
	d.life.wrote(err, true)
	return err
}

func (d diskLease) Put(ctx context.Context, rec agentjob.Record) error {
	l := d.life
	l.x.mu.Lock()
	dies := l.springs("crash at write", "before", rec.State, "")
	l.x.mu.Unlock()
	if dies {
		return agentjob.ErrLeaseLost
	}
	how, err := l.goes(ctx, storeTrouble, rec.State)
	if how == "hang, then write" {
		// The caller's time is over; the write happens all the same.
		if d.put(context.WithoutCancel(ctx), rec) == agentjob.ErrLeaseLost {
			return agentjob.ErrLeaseLost
		}
	}
	if err != nil {
		l.wrote(err, false)
		return err
	}
	err = d.put(ctx, rec)
	l.wrote(err, rec.State != agentjob.StateEnded)
	return err
}

// put writes and notes it.
func (d diskLease) put(ctx context.Context, rec agentjob.Record) error {
	l := d.life
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if err := d.Lease.Put(ctx, rec); err != nil {
		return err
	}
	l.recorded(rec)
	if l.springs("crash at write", "after", rec.State, "") {
		return agentjob.ErrLeaseLost
	}
	return nil
}

// wrote notes how a write went. proof: one that worked shows that the store does.
func (l *life) wrote(err error, proof bool) {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	switch {
	case err != nil && !errors.Is(err, agentjob.ErrLeaseLost):
		l.shut["a write failed"] = time.Now()
	case err == nil && proof:
		delete(l.shut, "a write failed")
	}
}

// ready is Config.Ready.
func (l *life) ready(ctx context.Context) (err error) {
	defer func() {
		l.x.mu.Lock()
		defer l.x.mu.Unlock()
		delete(l.shut, "it was not ready yet")
		delete(l.shut, "Ready failed")
		if v := recover(); v != nil || err != nil {
			l.shut["Ready failed"] = time.Now()
			err = errTrouble
		}
	}()
	_, err = l.goes(ctx, readyTrouble, "")
	return err
}

// acquire is Config.Acquire.
func (l *life) acquire(ctx context.Context) (release func(), err error) {
	if _, err := l.goes(ctx, acquireTrouble, ""); err != nil {
		return nil, err
	}
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	l.acquired++
	return func() {
		l.x.mu.Lock()
		defer l.x.mu.Unlock()
		l.acquired--
	}, nil
}

func (l *life) observe(e agentjob.Event) {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if !l.dead {
		l.events = append(l.events, e)
		l.weighBacklog()
	}
}

// handle is Config.Handler and Config.Resume.
func (l *life) handle(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
	x := l.x
	x.mu.Lock()
	e := x.byID[task.ID]
	if l.dead || e == nil {
		x.mu.Unlock()
		return nil, errHandler
	}
	l.checkRun(e, task)
	l.running++
	x.calls.Add(1)
	x.mu.Unlock()
	defer func() {
		defer x.calls.Done()
		x.mu.Lock()
		defer x.mu.Unlock()
		l.running--
	}()
	return l.behave(ctx, task, e.step)
}

func (l *life) behave(ctx context.Context, task *agentjob.Task, s step) (*agentjob.Reply, error) {
	reply := agentjob.Text(fmt.Sprintf("%s, run %d of life %d", task.ID, task.Resumed, l.number))
	var ended <-chan struct{}
	if s.How != "deaf" {
		ended = ctx.Done()
	}
	enough := time.After(time.Duration(s.Takes))
	for waiting := true; waiting; {
		var tick <-chan time.Time
		if s.How == "talk" {
			task.Progress("working", nil)
			tick = time.After(time.Second)
		}
		select {
		case <-enough:
			waiting = false
		case <-tick:
		case <-ended:
			if s.How == "late" {
				return reply, nil
			}
			return nil, context.Cause(ctx)
		}
	}
	switch s.How {
	case "error":
		return nil, errHandler
	case "panic":
		panic(errHandler)
	case "goexit":
		runtime.Goexit()
	case "nil":
		return nil, nil
	case "blank":
		return agentjob.Text(" \n"), nil
	case "long":
		return agentjob.Text(strings.Repeat("x", agentjob.MaxReplyUnits+1)), nil
	case "unavailable":
		l.x.mu.Lock()
		defer l.x.mu.Unlock()
		retry := cmp.Or(time.Duration(s.For), 30*time.Second)
		if until := time.Now().Add(retry); ctx.Err() == nil && until.After(l.unavailable) {
			l.unavailable, l.unavailableAt = until, time.Now()
		}
		return nil, agentjob.Unavailable(errHandler, time.Duration(s.For))
	}
	return reply, nil
}
