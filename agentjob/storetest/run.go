package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// A Harness makes the stores that are tested.
type Harness struct {
	// Open returns an empty store. The harness disposes of it with t.Cleanup if it must be.
	Open func(t testing.TB) agentjob.Store

	// Reopen closes a store and opens it again on the same data, as a restart does. Every
	// lease is closed by then. Nil says that the store isn't persistent.
	Reopen func(t testing.TB, store agentjob.Store) agentjob.Store
}

// Run runs every check as a subtest, each with a store of its own.
func Run(t *testing.T, h Harness) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if c.restarts && h.Reopen == nil {
				t.Skip("the store is not persistent")
			}
			c.run(newWorld(t, h))
		})
	}
}

type check struct {
	name     string // the sentence that it tests
	restarts bool   // only for persistent stores
	run      func(*world)
}

// checks is the suite.
var checks = []check{
	{"OneLeaseOfAProvider", false, oneLeaseOfAProvider},
	{"OneOfManyAcquiresWins", false, oneOfManyAcquiresWins},
	{"LeaseOutlivesItsContext", false, leaseOutlivesItsContext},
	{"ClosedLeaseChangesNothing", false, closedLeaseChangesNothing},
	{"LostStaysOpenWhileHeld", false, lostStaysOpenWhileHeld},
	{"CancelledContextsDontBlock", false, cancelledContextsDontBlock},
	{"FingerprintsNeedNoLease", false, fingerprintsNeedNoLease},

	{"RecordsComeBackExactly", false, recordsComeBackExactly},
	{"EveryIDIsPossible", false, everyIDIsPossible},
	{"PutReplaces", false, putReplaces},
	{"PutOfAnotherProviderIsRefused", false, putOfAnotherProviderIsRefused},
	{"PutCopies", false, putCopies},
	{"DeleteRemoves", false, deleteRemoves},
	{"ProvidersAreSeparate", false, providersAreSeparate},
	{"RecordsShowEarlierWrites", false, recordsShowEarlierWrites},
	{"RecordsAreOfOneMoment", false, recordsAreOfOneMoment},
	{"RecordsAllowWritesAndBreak", false, recordsAllowWritesAndBreak},
	{"ManyWriters", false, manyWriters},

	{"EverythingSurvivesARestart", true, everythingSurvivesARestart},
	{"LateWritesSurviveInOrder", true, lateWritesSurviveInOrder},
}

// A world is a store, a lease and a bounded context for one check. Its
// methods end the check if the store returns an unexpected error.
type world struct {
	testing.TB
	harness Harness
	ctx     context.Context
	store   agentjob.Store
	lease   agentjob.Lease // of provider
}

const (
	provider = "agent-1"
	patience = 30 * time.Second // no check waits longer for a store
)

func newWorld(t testing.TB, h Harness) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := &world{TB: t, harness: h, ctx: ctx, store: h.Open(t)}
	w.lease = w.acquire(provider)
	return w
}

// acquire takes a lease that is closed at the end of the check.
func (w *world) acquire(provider string) agentjob.Lease {
	w.Helper()
	lease, err := w.store.Acquire(w.ctx, provider)
	if err != nil {
		w.Fatalf("Acquire(%q) = %v, want a lease", provider, err)
	}
	w.Cleanup(func() { lease.Close() }) // again, for most; a check that cares looks at the error
	return lease
}

func (w *world) put(lease agentjob.Lease, rec agentjob.Record) {
	w.Helper()
	if err := lease.Put(w.ctx, rec); err != nil {
		w.Fatalf("Put of task %.40q in state %s = %v, want nil", rec.TaskID, rec.State, err)
	}
}

func (w *world) remove(lease agentjob.Lease, taskID string) {
	w.Helper()
	if err := lease.Delete(w.ctx, taskID); err != nil {
		w.Fatalf("Delete of task %.40q = %v, want nil", taskID, err)
	}
}

func (w *world) close(lease agentjob.Lease) {
	w.Helper()
	if err := lease.Close(); err != nil {
		w.Fatalf("Close = %v, want nil", err)
	}
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
