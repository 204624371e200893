package agentjob

import (
	"context"
	"sync"
	"time"
)

// A reason keeps the gate shut.
type reason string

const (
	notReady    reason = "not ready"    // Config.Ready has not succeeded, or failed last
	circuitOpen reason = "circuit open" // a handler said Unavailable
	storeFails  reason = "store fails"  // the last durable write did not work
	backlogFull reason = "backlog full" // too many replies wait for delivery
)

// pollGrace is how long a poll goes on after a task's own trouble has shut the gate. Where more than one
// message waits the next one's answer is under way just then, and would be lost to its deadline.
const pollGrace = time.Second

// A gate is open while new work may be claimed: when no reason speaks against
// it. It hands out a context that ends when work can't be answered, so that a poll in
// progress does not claim it. A full backlog keeps from the next poll only: one that is given
// up may lose what the platform hands out in that moment.
type gate struct {
	mu      sync.Mutex
	parent  context.Context  // ends at drain
	shut    map[reason]error // nil while there is no reason
	open    context.Context  // nil while work can't be answered
	cancel  context.CancelFunc
	changed chan struct{} // closed when the gate opens
}

func newGate(parent context.Context) *gate {
	return &gate{parent: parent, shut: map[reason]error{notReady: nil}, changed: make(chan struct{})}
}

// set adds a reason, with the error behind it, or takes it away. It reports
// whether that changed anything.
func (g *gate) set(why reason, holds bool, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	wasOpen := len(g.shut) == 0
	_, held := g.shut[why]
	if holds && g.shut == nil {
		g.shut = map[reason]error{}
	}
	if holds {
		g.shut[why] = err
	} else if delete(g.shut, why); len(g.shut) == 0 {
		g.shut = nil // a worker's usual state should not keep a map
	}
	hindered := len(g.shut)
	if _, full := g.shut[backlogFull]; full {
		hindered--
	}
	switch {
	case hindered > 0 && g.open != nil:
		if why == notReady {
			g.cancel()
		} else {
			time.AfterFunc(pollGrace, g.cancel)
		}
		g.open, g.cancel = nil, nil
	case hindered == 0 && g.open == nil:
		g.open, g.cancel = context.WithCancel(g.parent)
	}
	if len(g.shut) == 0 && !wasOpen {
		close(g.changed)
		g.changed = make(chan struct{})
	}
	return held != holds
}

// wait waits until the gate is open and returns the context for a poll. ok is false once the
// parent has ended.
func (g *gate) wait() (ctx context.Context, ok bool) {
	for {
		g.mu.Lock()
		open, changed, isOpen := g.open, g.changed, len(g.shut) == 0
		g.mu.Unlock()
		if isOpen {
			return open, g.parent.Err() == nil
		}
		select {
		case <-changed:
		case <-g.parent.Done():
			return nil, false
		}
	}
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.shut) == 0
}

// opening returns a channel that is closed when the gate opens the next time.
func (g *gate) opening() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// close releases the context handed out last.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancel != nil {
		g.cancel()
	}
}

// reasons returns what keeps the gate shut, empty while it is open.
func (g *gate) reasons() map[string]error {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[string]error, len(g.shut))
	for why, err := range g.shut {
		out[string(why)] = err
	}
	return out
}
