package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a harness of memory stores, each wrapped. Reopen wraps it anew, as if it were persistent.
func memory(wrap func(agentjob.Store) agentjob.Store) Harness {
	var inner *agentjobtest.Store
	return Harness{
		Open: func(testing.TB) agentjob.Store {
			inner = agentjobtest.NewStore()
			return wrap(inner)
		},
		Reopen: func(testing.TB, agentjob.Store) agentjob.Store { return wrap(inner) },
		Lose: func(_ testing.TB, store agentjob.Store, provider string) agentjob.Store {
			inner.LoseLease(provider)
			return store
		},
		Damage: func(testing.TB, agentjob.Store) agentjob.Store {
			return wrap(eachLease(func(l agentjob.Lease) agentjob.Lease { return unreadableOne{l} })(inner))
		},
		Fill: func(testing.TB, agentjob.Store) func() {
			inner.FailPuts(syscall.ENOSPC)
			return func() { inner.FailPuts(nil) }
		},
	}
}

func TestGoodStorePasses(t *testing.T) {
	Run(t, memory(func(s agentjob.Store) agentjob.Store { return s }))
}

func TestChecksAreSkippedWithoutWhatTheyNeed(t *testing.T) {
	h := Harness{Open: memory(func(s agentjob.Store) agentjob.Store { return s }).Open}
	for _, c := range checks {
		assert.Equal(t, c.needs == "", h.has(c.needs), c.name)
	}
	Run(t, h)
}

// Each broken store must be rejected by the checks of the sentence that it breaks.
func TestBrokenStoresAreRejected(t *testing.T) {
	for name, broken := range brokenStores {
		t.Run(name, func(t *testing.T) {
			for _, name := range broken.by {
				i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
				require.GreaterOrEqual(t, i, 0, "there is no check %s", name)
				h := memory(broken.wrap)
				h.patience = broken.patience
				failures := run(t, checks[i], h)
				require.NotEmpty(t, failures, "check %s accepts this store", name)
				require.Contains(t, failures[0], name+": ")
				require.Contains(t, failures[0], "The interface says: "+checks[i].says[0])
				t.Logf("%.300s", failures[0])
			}
		})
	}
}

// A check that rejects nothing proves nothing.
func TestEveryCheckRejectsABrokenStore(t *testing.T) {
	rejects := map[string]bool{}
	for _, broken := range brokenStores {
		for _, name := range broken.by {
			rejects[name] = true
		}
	}
	for _, c := range checks {
		assert.Contains(t, slices.Collect(maps.Keys(rejects)), c.name)
	}
}

// run returns the failures of one check.
func run(t *testing.T, c check, h Harness) []string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // a goroutine of its own for Fatalf to end
		defer close(done)
		c.run(newWorld(r, h, c))
	}()
	select {
	case <-done:
	case <-time.After(10 * cmp.Or(h.patience, patience)):
		t.Fatalf("check %s does not end", c.name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
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
