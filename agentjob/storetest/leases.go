package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/agentjob/agentjob-go/agentjob"
)

func oneLeaseOfAProvider(w *world) {
	second, err := w.store.Acquire(w.ctx, provider)
	if !errors.Is(err, agentjob.ErrLeaseHeld) {
		w.Errorf("the second Acquire = %v, want an error that matches ErrLeaseHeld", err)
	}
	if err == nil {
		w.close(second)
	}
	w.close(w.acquire("agent-2")) // another provider is free
	w.put(w.lease, claimed(provider, "task-1"))

	w.close(w.lease)
	w.close(w.lease) // again, doing nothing
	next := w.acquire(provider)
	w.close(w.lease) // a third time: it must not take the lease of the next holder
	if _, err := w.store.Acquire(w.ctx, provider); !errors.Is(err, agentjob.ErrLeaseHeld) {
		w.Errorf("Acquire after closing a former lease = %v, want ErrLeaseHeld, since another lease is open", err)
	}
	if got := w.records(next); len(got) != 1 {
		w.Errorf("the next lease has %d records, want the 1 of the former", len(got))
	}
}

func oneOfManyAcquiresWins(w *world) {
	const rivals = 16
	results := make(chan error, rivals)
	for range rivals {
		go func() {
			_, err := w.store.Acquire(w.ctx, "contested")
			results <- err
		}()
	}
	won := 0
	for range rivals {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, agentjob.ErrLeaseHeld):
			w.Errorf("Acquire = %v, want nil or ErrLeaseHeld", err)
		}
	}
	if won != 1 {
		w.Errorf("%d of %d concurrent Acquires got the lease, want 1", won, rivals)
	}
}

func leaseOutlivesItsContext(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	lease, err := w.store.Acquire(ctx, "agent-2")
	if err != nil {
		w.Fatalf("Acquire = %v, want a lease", err)
	}
	cancel()
	w.put(lease, claimed("agent-2", "task-1"))
	if _, err := w.store.Acquire(w.ctx, "agent-2"); !errors.Is(err, agentjob.ErrLeaseHeld) {
		w.Errorf("Acquire after the context of a lease ended = %v, want ErrLeaseHeld", err)
	}
	w.close(lease)
}

func closedLeaseChangesNothing(w *world) {
	w.put(w.lease, saved(provider, "task-1", "kept"))
	w.close(w.lease)
	for name, err := range map[string]error{
		"Put of a claimed record": w.lease.Put(w.ctx, claimed(provider, "task-1")),
		"Put of an ended record":  w.lease.Put(w.ctx, ended(provider, "task-2")),
		"Delete":                  w.lease.Delete(w.ctx, "task-1"),
	} {
		if !errors.Is(err, agentjob.ErrLeaseLost) {
			w.Errorf("%s after Close = %v, want an error that matches ErrLeaseLost", name, err)
		}
	}
	want := map[string]agentjob.Record{"task-1": saved(provider, "task-1", "kept")}
	if got := w.records(w.acquire(provider)); !reflect.DeepEqual(got, want) {
		w.Errorf("after writes to a closed lease the records are %+v, want %+v", got, want)
	}
}

func lostLeaseChangesNothing(w *world) {
	w.put(w.lease, saved(provider, "task-1", "kept"))
	w.store = w.harness.Lose(w.TB, w.store, provider)
	select {
	case <-w.lease.Lost():
	case <-w.ctx.Done():
		w.Fatalf("Lost stays open after the lease was taken away")
	}
	for name, err := range map[string]error{
		"Put of a saved record":  w.lease.Put(w.ctx, saved(provider, "task-1", "changed")),
		"Put of an ended record": w.lease.Put(w.ctx, ended(provider, "task-2")),
		"Delete":                 w.lease.Delete(w.ctx, "task-1"),
	} {
		if !errors.Is(err, agentjob.ErrLeaseLost) {
			w.Errorf("%s of a lost lease = %v, want an error that matches ErrLeaseLost", name, err)
		}
	}
	next := w.acquire(provider)
	w.expect(next, saved(provider, "task-1", "kept"))
	w.lease.Close() // may say that it was lost
	w.put(next, claimed(provider, "task-2"))
}

func lostStaysOpenWhileHeld(w *world) {
	lost := w.lease.Lost()
	if lost == nil {
		w.Fatalf("Lost returned nil, want a channel")
	}
	w.put(w.lease, claimed(provider, "task-1"))
	w.records(w.lease)
	select {
	case <-lost:
		w.Errorf("Lost is closed though nobody took the lease")
	default:
	}
}

// What a done context makes of a write is unknown; it must say so by its own
// error, and neither wait nor harm the store.
func cancelledContextsDontBlock(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	check := func(name string, err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			w.Errorf("%s with a cancelled context = %v, want nil or context.Canceled", name, err)
		}
	}
	lease, err := w.store.Acquire(ctx, "agent-2")
	if check("Acquire", err); err == nil {
		w.close(lease)
	}
	_, err = w.store.Provider(ctx, "fingerprint")
	check("Provider", err)
	check("BindProvider", w.store.BindProvider(ctx, "fingerprint", provider))
	check("Put", w.lease.Put(ctx, claimed(provider, "task-1")))
	check("Put of an ended record", w.lease.Put(ctx, ended(provider, "task-2")))
	check("Delete", w.lease.Delete(ctx, "task-2"))
	for _, err := range w.lease.Records(ctx) {
		check("Records", err)
	}

	w.acquire("agent-2") // a failed Acquire holds nothing
	w.put(w.lease, saved(provider, "task-1", "after"))
	if got := w.records(w.lease)["task-1"]; string(got.Content.Response) != "after" {
		w.Errorf("a Put after cancelled ones left %+v, want its own record", got)
	}
}

func fingerprintsNeedNoLease(w *world) {
	w.close(w.lease)
	expect := func(fingerprint, want string) {
		w.Helper()
		if got, err := w.store.Provider(w.ctx, fingerprint); err != nil || got != want {
			w.Errorf("Provider(%q) = %q, %v, want %q, nil", fingerprint, got, err, want)
		}
	}
	bind := func(fingerprint, provider string) {
		w.Helper()
		if err := w.store.BindProvider(w.ctx, fingerprint, provider); err != nil {
			w.Fatalf("BindProvider(%q, %q) = %v, want nil", fingerprint, provider, err)
		}
	}
	expect("print-1", "")
	bind("print-1", "agent-1")
	bind("print-2", "agent/2")
	expect("print-1", "agent-1")
	expect("print-2", "agent/2")
	bind("print-1", "agent-3")
	expect("print-1", "agent-3")
	expect("print", "")

	lease := w.acquire(provider) // holds nothing of it
	bind("print-3", provider)
	w.close(lease)
	expect("print-3", provider)

	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			expect("print-2", "agent/2")
			if err := w.store.BindProvider(w.ctx, "print-2", "agent/2"); err != nil {
				w.Errorf("a concurrent BindProvider = %v, want nil", err)
			}
		})
	}
	all.Wait()
}

// What was acknowledged when the lease was closed in the middle of writing is there, what was refused isn't.
func closeBesideWrites(w *world) {
	const writers = 8
	type outcome struct {
		last    agentjob.Record // acknowledged; the zero Record: none or deleted
		problem error
	}
	outcomes := make(chan outcome, writers)
	begun := make(chan struct{}, writers)
	for i := range writers {
		go func() {
			var o outcome
			id := fmt.Sprint("task-", i)
			for n := 0; ; n++ {
				rec := saved(provider, id, fmt.Sprint(n))
				if o.problem = w.lease.Put(w.ctx, rec); o.problem != nil {
					break
				}
				o.last = rec
				if n == 2 {
					begun <- struct{}{}
				}
				if n%5 == 4 {
					if o.problem = w.lease.Delete(w.ctx, id); o.problem != nil {
						break
					}
					o.last = agentjob.Record{}
				}
			}
			outcomes <- o
		}()
	}
	for range writers {
		select {
		case <-begun:
		case <-w.ctx.Done():
			w.Fatalf("concurrent Puts did not return")
		}
	}
	var closing sync.WaitGroup
	for range 2 { // at once
		closing.Go(func() {
			if err := w.lease.Close(); err != nil {
				w.Errorf("Close beside Puts = %v, want nil", err)
			}
		})
	}
	closing.Wait()
	var want []agentjob.Record
	for range writers {
		o := <-outcomes
		if !errors.Is(o.problem, agentjob.ErrLeaseLost) {
			w.Errorf("a Put or Delete after Close = %v, want an error that matches ErrLeaseLost", o.problem)
		}
		if o.last.TaskID != "" {
			want = append(want, o.last)
		}
	}
	w.expect(w.acquire(provider), want...)
}
