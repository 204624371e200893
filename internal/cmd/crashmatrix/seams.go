package main

import (
	"context"
	"iter"
	"net/http"
	"path"

	"github.com/agentjob/agentjob-go/agentjob"
)

// A transport makes a step of every request, named by method and route: "POST response".
type transport struct {
	*script
	next http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	return resp, t.step(r.Method+" "+path.Base(r.URL.Path), func() error {
		resp, err = t.next.RoundTrip(r)
		return err
	})
}

// A store makes a step of everything that is written: "put saved".
type store struct {
	*script
	agentjob.Store
	sabotage agentjob.State
}

func (s store) BindProvider(ctx context.Context, fingerprint, provider string) error {
	return s.step("bind provider", func() error { return s.Store.BindProvider(ctx, fingerprint, provider) })
}

func (s store) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	var out agentjob.Lease
	err := s.step("acquire lease", func() error {
		l, err := s.Store.Acquire(ctx, provider)
		out = lease{s.script, l, s.sabotage}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

type lease struct {
	*script
	agentjob.Lease
	sabotage agentjob.State
}

func (l lease) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		for rec, err := range l.Lease.Records(ctx) {
			if err == nil {
				l.say("known", rec.TaskID, string(rec.State))
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (l lease) Put(ctx context.Context, rec agentjob.Record) error {
	name := "put " + string(rec.State)
	if rec.State == agentjob.StateClaimed && rec.Resumed > 0 {
		name = "put resumed"
	}
	return l.step(name, func() error {
		if rec.State != l.sabotage {
			if err := l.Lease.Put(ctx, rec); err != nil {
				return err
			}
		}
		l.say("put", rec.TaskID, string(rec.State))
		return nil
	})
}

func (l lease) Delete(ctx context.Context, taskID string) error {
	return l.step("delete", func() error { return l.Lease.Delete(ctx, taskID) })
}

func (l lease) Close() error { return l.step("close lease", l.Lease.Close) }
