package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A world is a platform with one agent, whose workers come one after the other. A poll of
// one that has ended would otherwise be handed a task for as long as the platform has not seen its connection end.
type world struct {
	platform *agentjobtest.Server
	agent    *agentjobtest.Agent
	front    *httptest.Server

	mu      sync.Mutex
	life    int
	current context.Context
	end     context.CancelFunc
	inside  *sync.WaitGroup // requests of this life
}

func newWorld() *world {
	platform := agentjobtest.NewServer(agentjobtest.Settings{MaxConcurrentChats: 1_000_000})
	w := &world{platform: platform, agent: platform.AddAgent("powercut"), end: func() {}, inside: &sync.WaitGroup{}}
	w.front = httptest.NewServer(w)
	w.next()
	return w
}

func (w *world) close() {
	w.platform.Close()
	w.front.Close()
}

func userAgent(life int) string { return fmt.Sprintf("powercut-life-%d", life) }

// next begins the life of another worker, which names itself by the result. When it returns the platform
// has done with all others, and refuses them.
func (w *world) next() (userAgentOfIt string) {
	w.mu.Lock()
	w.end()
	w.life++
	before := w.inside
	w.current, w.end = context.WithCancel(context.Background())
	w.inside = &sync.WaitGroup{}
	name := userAgent(w.life)
	w.mu.Unlock()
	before.Wait()
	return name
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	living, inside := w.current, w.inside
	if r.UserAgent() != userAgent(w.life) {
		w.mu.Unlock()
		http.Error(rw, "of a worker that has ended", http.StatusServiceUnavailable)
		return
	}
	inside.Add(1)
	w.mu.Unlock()
	defer inside.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(living, cancel)()
	w.platform.ServeHTTP(rw, r.WithContext(ctx))
}
