package agentjob_test

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// A life is one worker, from its start to the return of Run or the crash.
type life struct {
	x      *trial
	number int
	worker *agentjob.Worker
	alive  context.Context // its requests'
	kill   context.CancelFunc
	done   chan struct{} // closed when Run has returned
	err    error         // what it returned

	began                      time.Time
	holds                      bool                 // the lease, or held it
	lost                       bool                 // it was taken away
	dead                       bool                 // crashed: whatever it still does does not happen
	asked                      string               // how it was asked to end first: drain, stop or lose lease
	askedAt                    time.Time            // when
	stopped                    time.Time            // when it was asked to stop, maybe while draining
	shut                       map[string]time.Time // why nothing may be claimed or beaten, since when
	unavailable, unavailableAt time.Time            // until when a handler has said that it is, and since when

	polling, running, acquired int
	requests                   int
	accepted                   map[*errand]bool
	events                     []agentjob.Event
}

// begin starts a worker, if none runs and another is wanted.
func (x *trial) begin() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.current != nil {
		return
	}
	l := &life{
		x: x, number: len(x.lives), began: time.Now(), done: make(chan struct{}),
		shut: map[string]time.Time{"it was not ready yet": {}}, accepted: map[*errand]bool{},
	}
	l.alive, l.kill = context.WithCancel(context.Background())
	var transport http.RoundTripper = wire{l, x.srv.Client().Transport}
	if x.sabotage.transport != nil {
		transport = x.sabotage.transport(transport)
	}
	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: x.srv.URL, APIKey: secret.New(x.agent.Key), HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		panic(err)
	}
	cfg := agentjob.Config{
		Client: client, Store: disk{x.store, l}, Handler: agentjob.HandlerFunc(l.handle), Observe: l.observe,
		Ready: l.ready, Acquire: l.acquire, Concurrency: x.plan.Concurrency, Backlog: x.plan.Backlog, PollWait: time.Minute,
	}
	if x.plan.Resume {
		cfg.Resume = l.handle
	}
	if x.sabotage.config != nil {
		x.sabotage.config(&cfg)
	}
	l.worker, err = agentjob.NewWorker(cfg)
	if err != nil {
		panic(err)
	}
	x.lives, x.current = append(x.lives, l), l
	l.weighBacklog()
	go func() {
		err := l.worker.Run(context.Background())
		l.ended(err)
	}()
}

// end asks the worker to end, or ends it. x.mu is held.
func (l *life) end(how string) {
	if how == "crash" {
		l.crash()
		return
	}
	if how == "lose lease" {
		if !l.holds {
			return // nobody to take it from
		}
		l.lost = true
	}
	if l.asked == "" {
		l.asked, l.askedAt = how, time.Now()
	}
	if how != "drain" && l.stopped.IsZero() {
		l.stopped = time.Now()
	}
	l.shut["it was asked to "+how] = time.Now()
	switch {
	case how == "lose lease":
		l.x.store.LoseLease(l.x.agent.ID)
	case how == "stop":
		l.worker.Stop()
	case !l.x.sabotage.neverDrains:
		l.worker.Drain()
	}
}

// crash makes nothing that the worker still does happen, as for a process that was killed, and
// starts another. x.mu is held.
func (l *life) crash() {
	if l.dead || l.x.current != l {
		return
	}
	l.dead = true
	l.x.current = nil
	l.x.store.Crash()
	l.kill()
	l.worker.Stop()
	time.AfterFunc(restartAfter, l.x.begin)
}

// ended notes that Run has returned.
func (l *life) ended(err error) {
	x := l.x
	x.mu.Lock()
	defer x.mu.Unlock()
	l.err = err
	close(l.done)
	if l.dead {
		return // nobody is there to whom it returns
	}
	l.checkEnd()
	l.kill()
	x.current = nil
	time.AfterFunc(restartAfter, x.begin)
}

var errTrouble = fmt.Errorf("in trouble: %w", syscall.ENOSPC)
