package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/agentjob/agentjob-go/agentjob"
)

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

// waiter waits until the lease is free.
type waiter struct{ agentjob.Store }

func (s waiter) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if errors.Is(err, agentjob.ErrLeaseHeld) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return lease, err
}

// closesTheNext knows leases by their provider only.
func closesTheNext(s agentjob.Store) agentjob.Store {
	return eachLease(func(l agentjob.Lease) agentjob.Lease {
		return closer{l, s.(interface{ LoseLease(string) })}
	})(s)
}

type closer struct {
	agentjob.Lease
	store interface{ LoseLease(string) }
}

func (l closer) Close() error {
	l.store.LoseLease(provider)
	return nil
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

type lostSays struct {
	agentjob.Lease
	lost chan struct{}
}

func (l lostSays) Lost() <-chan struct{} { return l.lost }

// deaf takes the end of a context for an error of its own.
type deaf struct{ agentjob.Lease }

func (l deaf) Put(ctx context.Context, rec agentjob.Record) error {
	if ctx.Err() != nil {
		return errors.New("time-out")
	}
	return l.Lease.Put(ctx, rec)
}

// leaseBound keeps bindings in the lease.
type leaseBound struct {
	agentjob.Store
	mu    sync.Mutex
	bound map[string]string
}

func (s *leaseBound) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	return unbinds{lease, s}, nil
}

type unbinds struct {
	agentjob.Lease
	store *leaseBound
}

func (l unbinds) Close() error {
	l.store.mu.Lock()
	l.store.bound = nil
	l.store.mu.Unlock()
	return l.Lease.Close()
}

func (s *leaseBound) BindProvider(_ context.Context, fingerprint, provider string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound == nil {
		s.bound = map[string]string{}
	}
	s.bound[fingerprint] = provider
	return nil
}

func (s *leaseBound) Provider(_ context.Context, fingerprint string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound[fingerprint], nil
}

// acknowledgesEarly writes a put when the next one comes; Close forgets the last.
func acknowledgesEarly(s agentjob.Store) agentjob.Store {
	return eachLease(func(l agentjob.Lease) agentjob.Lease { return &early{Lease: l, waiting: map[string]agentjob.Record{}} })(s)
}

type early struct {
	agentjob.Lease
	mu      sync.Mutex
	over    bool
	waiting map[string]agentjob.Record
}

func (l *early) Put(ctx context.Context, rec agentjob.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return agentjob.ErrLeaseLost
	}
	if before, ok := l.waiting[rec.TaskID]; ok {
		if err := l.Lease.Put(ctx, before); err != nil {
			return err
		}
	}
	l.waiting[rec.TaskID] = rec
	return nil
}

func (l *early) Delete(ctx context.Context, taskID string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, taskID)
	return l.Lease.Delete(ctx, taskID)
}

func (l *early) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	return l.Lease.Close()
}
