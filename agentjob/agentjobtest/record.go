package agentjobtest

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// A Request is one request that the server received.
type Request struct {
	Route  Route
	Method string
	Path   string // escaped
	Header http.Header
	Body   []byte
	At     time.Time // on the platform's clock
	Status int       // of the answer; 0: the connection was cut
}

// maxLogged bounds the bodies in the log.
const maxLogged = 64 << 20

func (s *Server) enter(route Route, r *http.Request, body []byte) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Request{Route: route, Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header.Clone(), Body: body, At: s.now()}
}

func (s *Server) leave(route Route, entry *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, *entry)
	s.logged += len(entry.Body)
	for len(s.log) > s.settings.MaxRequests || s.logged > maxLogged {
		oldest := s.log[:(len(s.log)+1)/2]
		for _, r := range oldest {
			s.logged -= len(r.Body)
		}
		s.log = slices.Clone(s.log[len(oldest):])
	}
	s.done[route]++
	s.bell.ring()
}

// Requests returns the requests of known routes that were answered or cut, in that order.
// Headers and bodies are the log's own: read them only.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Await returns once n requests of a route have been answered or cut since the
// server's start. Like every wait for the server it returns http.ErrServerClosed when the
// server closes before.
func (s *Server) Await(ctx context.Context, route Route, n int) error {
	return s.await(ctx, &s.bell, func() bool { return s.done[route] >= n })
}

// await returns when the condition, read under the lock at each ring, holds.
func (s *Server) await(ctx context.Context, b *bell, holds func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := holds(), b.wait()
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return http.ErrServerClosed
		}
	}
}

// Counts tells what happened to a task.
type Counts struct {
	Claims     int // times it was handed out
	Deliveries int // messages that its replies became: more than one is a duplicate
	Repeats    int // replies answered as a repeat of the accepted one
	Refused    int // replies refused with 409
	Charges    int // payments, free messages included
}

// Counts returns the counts of a task, all zero for one that is unknown or forgotten.
func (s *Server) Counts(taskID string) Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[taskID]; t != nil {
		return t.counts
	}
	return Counts{}
}
