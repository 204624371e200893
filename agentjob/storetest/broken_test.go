package storetest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// eachLease breaks the leases of a store.
func eachLease(broken func(agentjob.Lease) agentjob.Lease) func(agentjob.Store) agentjob.Store {
	return func(s agentjob.Store) agentjob.Store { return leaseWrapper{s, broken} }
}

type leaseWrapper struct {
	agentjob.Store
	wrap func(agentjob.Lease) agentjob.Lease
}

func (s leaseWrapper) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	return s.wrap(lease), nil
}

// leaseTwice takes the lease from its holder.
func leaseTwice(s agentjob.Store) agentjob.Store { return taker{s} }

type taker struct{ agentjob.Store }

func (s taker) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if errors.Is(err, agentjob.ErrLeaseHeld) {
		s.Store.(interface{ LoseLease(string) }).LoseLease(provider)
		return s.Store.Acquire(ctx, provider)
	}
	return lease, err
}

// neverClosed says that it wrote, after Close too.
type neverClosed struct{ agentjob.Lease }

func (l *neverClosed) Put(ctx context.Context, rec agentjob.Record) error {
	if err := l.Lease.Put(ctx, rec); !errors.Is(err, agentjob.ErrLeaseLost) {
		return err
	}
	return nil
}

// losesLate drops what may be durable later.
type losesLate struct{ agentjob.Lease }

func (l losesLate) Put(ctx context.Context, rec agentjob.Record) error {
	if rec.State == agentjob.StateEnded {
		return nil
	}
	return l.Lease.Put(ctx, rec)
}

type emptyIsNil struct{ agentjob.Lease }

func (l emptyIsNil) Put(ctx context.Context, rec agentjob.Record) error {
	if len(rec.Content.Response) == 0 {
		rec.Content.Response = nil
	}
	return l.Lease.Put(ctx, rec)
}

type seconds struct{ agentjob.Lease }

func (l seconds) Put(ctx context.Context, rec agentjob.Record) error {
	rec.ClaimedAt = rec.ClaimedAt.Truncate(time.Second)
	return l.Lease.Put(ctx, rec)
}

// tornReads reads twice, with two writes in between, and mixes the records.
type tornReads struct {
	agentjob.Lease
	wrote chan struct{}
}

func (l tornReads) Put(ctx context.Context, rec agentjob.Record) error {
	defer func() {
		select {
		case l.wrote <- struct{}{}:
		default:
		}
	}()
	return l.Lease.Put(ctx, rec)
}

func (l tornReads) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		first := map[string]agentjob.Record{}
		for rec, err := range l.Lease.Records(ctx) {
			if err != nil {
				yield(rec, err)
				return
			}
			first[rec.TaskID] = rec
		}
		for range 6 { // three rounds of the writer
			select {
			case <-l.wrote:
			case <-ctx.Done():
			}
		}
		for rec, err := range l.Lease.Records(ctx) {
			if err == nil && rec.TaskID == "second" {
				first[rec.TaskID] = rec
			}
		}
		for rec := range maps.Values(first) {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

type cutsIDs struct{ agentjob.Lease }

func (l cutsIDs) Put(ctx context.Context, rec agentjob.Record) error {
	rec.TaskID, _, _ = strings.Cut(rec.TaskID, "\x00")
	return l.Lease.Put(ctx, rec)
}

type forgetful struct{ agentjob.Store }

func (forgetful) BindProvider(context.Context, string, string) error { return nil }

// contextLeases closes a lease when the context of its Acquire ends.
type contextLeases struct{ agentjob.Store }

func (s contextLeases) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	return endsWith{lease, ctx}, nil
}

type endsWith struct {
	agentjob.Lease
	ctx context.Context
}

func (l endsWith) Put(ctx context.Context, rec agentjob.Record) error {
	if l.ctx.Err() != nil {
		return agentjob.ErrLeaseLost
	}
	return l.Lease.Put(ctx, rec)
}
