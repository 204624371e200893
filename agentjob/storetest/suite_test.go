package storetest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a harness of the memory store that Reopen keeps, as if it were persistent.
func memory(wrap func(agentjob.Store) agentjob.Store) Harness {
	return Harness{
		Open:   func(testing.TB) agentjob.Store { return wrap(agentjobtest.NewStore()) },
		Reopen: func(_ testing.TB, store agentjob.Store) agentjob.Store { return store },
	}
}

func TestGoodStorePasses(t *testing.T) {
	Run(t, memory(func(s agentjob.Store) agentjob.Store { return s }))
}

// Each broken store must be rejected by the checks of the sentence that it breaks.
func TestBrokenStoresAreRejected(t *testing.T) {
	for name, broken := range map[string]struct {
		wrap func(agentjob.Store) agentjob.Store
		by   []string
	}{
		"gives a lease twice":       {leaseTwice, []string{"OneLeaseOfAProvider", "OneOfManyAcquiresWins", "LeaseOutlivesItsContext"}},
		"writes after Close":        {eachLease(func(l agentjob.Lease) agentjob.Lease { return &neverClosed{l} }), []string{"ClosedLeaseChangesNothing"}},
		"loses late writes":         {eachLease(func(l agentjob.Lease) agentjob.Lease { return losesLate{l} }), []string{"RecordsShowEarlierWrites", "LateWritesSurviveInOrder"}},
		"takes empty for nil":       {eachLease(func(l agentjob.Lease) agentjob.Lease { return emptyIsNil{l} }), []string{"RecordsComeBackExactly"}},
		"keeps times in seconds":    {eachLease(func(l agentjob.Lease) agentjob.Lease { return seconds{l} }), []string{"RecordsComeBackExactly", "PutReplaces"}},
		"reads while others write":  {eachLease(func(l agentjob.Lease) agentjob.Lease { return tornReads{l, make(chan struct{})} }), []string{"RecordsAreOfOneMoment"}},
		"cuts ids at NUL":           {eachLease(func(l agentjob.Lease) agentjob.Lease { return cutsIDs{l} }), []string{"EveryIDIsPossible"}},
		"forgets fingerprints":      {func(s agentjob.Store) agentjob.Store { return forgetful{s} }, []string{"FingerprintsNeedNoLease", "EverythingSurvivesARestart"}},
		"ends leases with contexts": {func(s agentjob.Store) agentjob.Store { return contextLeases{s} }, []string{"LeaseOutlivesItsContext"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range broken.by {
				i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
				require.GreaterOrEqual(t, i, 0, "there is no check %s", name)
				failures := run(t, checks[i].run, memory(broken.wrap))
				require.NotEmpty(t, failures, "check %s accepts this store", name)
				t.Logf("%s: %.300s", name, failures[0])
			}
		})
	}
}

// run returns the failures of one check.
func run(t *testing.T, check func(*world), h Harness) []string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // a goroutine of its own for Fatalf to end
		defer close(done)
		check(newWorld(r, h))
	}()
	<-done
	return r.failures
}

// A recorder keeps failures instead of failing the test.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
