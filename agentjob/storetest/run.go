package storetest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// A Harness makes the stores that are tested. Open is required. The other functions bring about what a
// check needs; without one its checks are skipped, and the store's own tests should show the like.
type Harness struct {
	// Open returns an empty store. The harness disposes of it with t.Cleanup if it must be.
	Open func(t testing.TB) agentjob.Store

	// Reopen closes a store and opens it again on the same data, as a restart does. Every
	// lease is closed by then. Nil says that the store isn't persistent.
	Reopen func(t testing.TB, store agentjob.Store) agentjob.Store

	// Lose takes a provider's lease away from its holder, and returns the store, or another one on
	// the same data. Nil says that leases can't be lost, or not by a test.
	Lose func(t testing.TB, store agentjob.Store, provider string) agentjob.Store

	// Damage makes one of the records unreadable and returns the store, or another one on the
	// same data. Every lease is closed by then.
	Damage func(t testing.TB, store agentjob.Store) agentjob.Store

	// Fill makes the disk full, so that a record of a megabyte can't be written, until
	// the returned function is called.
	Fill func(t testing.TB, store agentjob.Store) (empty func())

	patience time.Duration // for tests of the suite itself; 0: patience
}

// has reports whether there is a function that a check needs.
func (h Harness) has(need string) bool {
	return map[string]bool{
		"": true, "Reopen": h.Reopen != nil, "Lose": h.Lose != nil, "Damage": h.Damage != nil, "Fill": h.Fill != nil,
	}[need]
}

// Run runs every check as a subtest, each with a store of its own. A failure names the check and what
// the interface says.
func Run(t *testing.T, h Harness) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if !h.has(c.needs) {
				t.Skipf("the harness has no %s", c.needs)
			}
			c.run(newWorld(t, h, c))
		})
	}
}

// A world is a store, a lease and a bounded context for one check. Its
// methods end the check if the store returns an unexpected error.
type world struct {
	testing.TB
	check   check
	harness Harness
	ctx     context.Context
	store   agentjob.Store
	lease   agentjob.Lease // of provider
}

const (
	provider = "agent-1"
	patience = 30 * time.Second // no check waits longer for a store
)

func newWorld(t testing.TB, h Harness, c check) *world {
	t.Helper()
	h.patience = cmp.Or(h.patience, patience)
	ctx, cancel := context.WithTimeout(t.Context(), h.patience)
	t.Cleanup(cancel)
	w := &world{TB: t, check: c, harness: h, ctx: ctx, store: h.Open(t)}
	w.lease = w.acquire(provider)
	return w
}

// Errorf names the check, and what the interface says of it.
func (w *world) Errorf(format string, args ...any) {
	w.Helper()
	w.TB.Errorf("%s", w.failure(format, args...))
}

// Fatalf is Errorf and ends the check.
func (w *world) Fatalf(format string, args ...any) {
	w.Helper()
	w.TB.Fatalf("%s", w.failure(format, args...))
}

func (w *world) failure(format string, args ...any) string {
	return fmt.Sprintf("%s: %s\nThe interface says: %s", w.check.name, fmt.Sprintf(format, args...), strings.Join(w.check.says, " "))
}

// within ends the check if a call of the store doesn't return.
func within[T any](w *world, what string, call func() (T, error)) (T, error) {
	w.Helper()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	late := time.NewTimer(2 * w.harness.patience) // the context ends earlier
	defer late.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-late.C:
		w.Fatalf("%s did not return", what)
		panic("Fatalf returned")
	}
}

// acquire takes a lease that is closed at the end of the check.
func (w *world) acquire(provider string) agentjob.Lease {
	w.Helper()
	lease, err := within(w, "Acquire", func() (agentjob.Lease, error) { return w.store.Acquire(w.ctx, provider) })
	if err != nil {
		w.Fatalf("Acquire(%.40q) = %v, want a lease", provider, err)
	}
	w.Cleanup(func() { lease.Close() }) // again, for most; a check that cares looks at the error
	return lease
}

// do calls a method that returns an error only, and ends the check if there is one.
func (w *world) do(what string, call func() error) {
	w.Helper()
	if _, err := within(w, what, func() (struct{}, error) { return struct{}{}, call() }); err != nil {
		w.Fatalf("%s = %v, want nil", what, err)
	}
}

func (w *world) put(lease agentjob.Lease, rec agentjob.Record) {
	w.Helper()
	w.do(fmt.Sprintf("Put of task %.40q in state %s", rec.TaskID, rec.State), func() error { return lease.Put(w.ctx, rec) })
}

func (w *world) remove(lease agentjob.Lease, taskID string) {
	w.Helper()
	w.do(fmt.Sprintf("Delete of task %.40q", taskID), func() error { return lease.Delete(w.ctx, taskID) })
}

func (w *world) close(lease agentjob.Lease) {
	w.Helper()
	w.do("Close", lease.Close)
}

// records returns the lease's records by task id.
func (w *world) records(lease agentjob.Lease) map[string]agentjob.Record {
	w.Helper()
	found := map[string]agentjob.Record{}
	for rec, err := range lease.Records(w.ctx) {
		if err != nil {
			w.Fatalf("Records yielded the error %v, want none", err)
		}
		if _, twice := found[rec.TaskID]; twice {
			w.Fatalf("Records yielded task %.40q twice", rec.TaskID)
		}
		found[rec.TaskID] = rec
	}
	return found
}

// reopen restarts the store and acquires the provider again.
func (w *world) reopen() {
	w.Helper()
	w.store = w.harness.Reopen(w.TB, w.store)
	w.lease = w.acquire(provider)
}

// claimed returns a record as a worker puts it first.
func claimed(provider, taskID string) agentjob.Record {
	return agentjob.Record{
		Provider: provider, TaskID: taskID, ChatID: "chat-1", State: agentjob.StateClaimed,
		ClaimedAt: time.Date(2026, 11, 9, 8, 7, 6, 5, time.UTC),
	}
}

// saved returns a record with a reply that waits for delivery.
func saved(provider, taskID, response string) agentjob.Record {
	rec := claimed(provider, taskID)
	rec.State = agentjob.StateSaved
	rec.SavedAt = rec.ClaimedAt.Add(time.Second)
	rec.Content.Response = []byte(response)
	return rec
}

// ended returns a tombstone.
func ended(provider, taskID string) agentjob.Record {
	rec := claimed(provider, taskID)
	rec.State, rec.End = agentjob.StateEnded, agentjob.EndDelivered
	rec.EndedAt = rec.ClaimedAt.Add(2 * time.Second)
	return rec
}
