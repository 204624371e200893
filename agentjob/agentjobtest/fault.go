package agentjobtest

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// A FaultKind is how a request goes wrong.
type FaultKind int

// The faults.
const (
	// Answer answers with Fault.Status, ContentType, Body and RetryAfter, and processes nothing.
	Answer FaultKind = iota
	// Slow processes the request after Fault.Delay and answers well.
	Slow
	// CutBefore closes the connection before the request is processed. A Go client repeats
	// a GET by itself if that happens on a connection that it used before.
	CutBefore
	// CutAfter processes the request and closes the connection without an answer.
	CutAfter
	// Truncate processes the request and sends half of the answer.
	Truncate
	// Endless processes the request and sends an answer that does not end until the client leaves.
	Endless
	// Redirect answers 307 to Fault.Body and processes nothing.
	Redirect
	// WrongTaskID processes the request and names another task in the answer. It is for the
	// routes with a task id in their path; others answer well.
	WrongTaskID
	// AnswerAfter processes the request and then answers like Answer: the gateway in front of the
	// platform gave up, the platform did not.
	AnswerAfter
)

// A Fault says how requests of a route go wrong.
type Fault struct {
	Route Route
	Kind  FaultKind
	Times int // how many requests; 0: until cleared
	Skip  int // requests that go well first

	Delay       time.Duration // before anything else
	Status      int           // of Answer and AnswerAfter; 0: 500
	ContentType string        // of both; "" is JSON
	Body        string        // of both; the target of Redirect
	RetryAfter  string        // header of both
}

// An Injection is a fault at work.
type Injection struct {
	srv *Server
	f   *fault
}

type fault struct {
	Fault
	count int
	over  bool
}

// Inject makes requests go wrong. Of several faults of a route the first one injected that
// still applies is used.
func (s *Server) Inject(f Fault) *Injection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Status == 0 {
		f.Status = http.StatusInternalServerError
	}
	in := &fault{Fault: f}
	s.faults = append(s.faults, in)
	return &Injection{s, in}
}

// Clear ends the fault.
func (i *Injection) Clear() {
	i.srv.mu.Lock()
	defer i.srv.mu.Unlock()
	i.f.over = true
}

// Count returns how many requests went wrong.
func (i *Injection) Count() int {
	i.srv.mu.Lock()
	defer i.srv.mu.Unlock()
	return i.f.count
}

// fault returns the fault that this request meets, or nil.
func (s *Server) fault(route Route) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.DeleteFunc(s.faults, func(f *fault) bool { return f.over })
	for _, f := range s.faults {
		switch {
		case f.Route != route:
		case f.Skip > 0:
			f.Skip--
			return nil
		default:
			f.count++
			f.over = f.Times > 0 && f.count >= f.Times
			return f
		}
	}
	return nil
}

// apply lets one request go wrong. It may panic with http.ErrAbortHandler, which
// cuts the connection.
func (f *fault) apply(s *Server, w http.ResponseWriter, r *http.Request, serve func() answer, taskID string, entry *Request) {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.closed:
			panic(http.ErrAbortHandler)
		}
	}
	switch f.Kind {
	case Answer:
		f.answer(s, w, entry)
		return
	case Redirect:
		entry.Status = http.StatusTemporaryRedirect
		w.Header().Set("Location", f.Body)
		s.write(w, http.StatusTemporaryRedirect, "", nil)
		return
	case CutBefore:
		panic(http.ErrAbortHandler)
	}
	a := serve()
	body := a.encode()
	switch f.Kind {
	case CutAfter:
		panic(http.ErrAbortHandler)
	case Truncate:
		entry.Status = a.status
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
		s.write(w, a.status, "application/json", body[:len(body)/2])
		_ = http.NewResponseController(w).Flush() // else an abort drops the half; the client may have gone
		panic(http.ErrAbortHandler)
	case Endless:
		entry.Status = a.status
		s.write(w, a.status, "application/json", body[:len(body)/2])
		s.pour(w, r)
		panic(http.ErrAbortHandler)
	case AnswerAfter:
		f.answer(s, w, entry)
		return
	case WrongTaskID:
		body = bytes.ReplaceAll(body, answer{body: taskID}.encode(), answer{body: uuid.NewString()}.encode())
	}
	entry.Status = a.status
	s.write(w, a.status, "application/json", body)
}

// answer writes what the fault says instead of the platform.
func (f *fault) answer(s *Server, w http.ResponseWriter, entry *Request) {
	entry.Status = f.Status
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	s.write(w, f.Status, cmp.Or(f.ContentType, "application/json"), []byte(f.Body))
}

// pour writes spaces until the client leaves.
func (s *Server) pour(w http.ResponseWriter, r *http.Request) {
	spaces := bytes.Repeat([]byte(" "), 32<<10)
	for r.Context().Err() == nil {
		select {
		case <-s.closed:
			return
		default:
		}
		if _, err := w.Write(spaces); err != nil {
			return
		}
	}
}
