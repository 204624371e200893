package agentjob

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Phase is where a worker's life is.
type Phase string

// The phases, in order.
const (
	PhaseNew      Phase = "new"      // Run was not called
	PhaseStarting Phase = "starting" // finding the provider, reading the records
	PhaseServing  Phase = "serving"
	PhaseDraining Phase = "draining" // finishing, nothing is claimed
	PhaseStopped  Phase = "stopped"  // Run has returned or is about to
)

// Status is a snapshot of a worker for people and health checks.
type Status struct {
	Phase   Phase
	AgentID string // "" until it is known

	// Open reports whether work is being claimed; while it is false in
	// PhaseServing, Waiting tells why.
	Open    bool
	Waiting map[string]error

	LastContact   time.Time // last good answer of the platform, zero: none yet
	LastHeartbeat time.Time // last heartbeat it took, zero: none yet
	LastError     error     // last failure, also after things went well again
	Err           error     // what Run returned

	Running []TaskStatus // tasks that a handler works on, oldest first
	Backlog int          // saved replies that wait for delivery
	Ends    map[End]int  // tasks ended since Run was called
}

// TaskStatus is a running task in a [Status].
type TaskStatus struct {
	ID       string
	Since    time.Time // the claim
	Deadline time.Time // zero: not known
}

// Status returns a snapshot.
func (w *Worker) Status() Status { return w.status.snapshot() }

// A statusBoard gathers what the parts of a worker report.
type statusBoard struct {
	mu      sync.Mutex
	s       Status
	running map[string]TaskStatus
	gate    *gate
}

func (b *statusBoard) update(f func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.s)
}

// attach shows the state of a gate from now on.
func (b *statusBoard) attach(g *gate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gate = g
}

func (b *statusBoard) agentID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s.AgentID
}

// contact notes a good answer.
func (b *statusBoard) contact() {
	b.update(func(s *Status) { s.LastContact = time.Now() })
}

func (b *statusBoard) failed(err error) {
	b.update(func(s *Status) { s.LastError = err })
}

func (b *statusBoard) ended(end End) {
	b.update(func(s *Status) {
		if s.Ends == nil {
			s.Ends = map[End]int{}
		}
		s.Ends[end]++
	})
}

func (b *statusBoard) began(t TaskStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil {
		b.running = map[string]TaskStatus{}
	}
	b.running[t.ID] = t
}

func (b *statusBoard) left(taskID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, taskID)
}

func (b *statusBoard) snapshot() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.s
	s.Ends = maps.Clone(s.Ends)
	s.Running = slices.SortedFunc(maps.Values(b.running), func(x, y TaskStatus) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.ID, y.ID))
	})
	if b.gate != nil && s.Phase == PhaseServing {
		s.Waiting = b.gate.reasons()
		s.Open = len(s.Waiting) == 0
	}
	return s
}
