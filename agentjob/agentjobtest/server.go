package agentjobtest

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request.
const maxBody = 8 << 20

// A Server is a running platform.
type Server struct {
	// URL is the base URL, without a trailing slash.
	URL string

	http   *http.Server
	client *http.Client
	served sync.WaitGroup
	closed chan struct{}

	mu       sync.Mutex
	settings Settings
	agents   map[string]*Agent
	keys     map[string]*Agent
	tasks    map[string]*task
	ended    []*task // of them, those that are over, oldest first
	faults   []*fault
	registry registry
	log      []Request
	logged   int           // bytes of bodies in it
	done     map[Route]int // requests answered
	bell     bell          // rings with each of them
}

// NewServer starts a platform on a loopback socket. It panics if there is none,
// like httptest.NewServer.
func NewServer(settings Settings) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("agentjobtest: listen on loopback: " + err.Error())
	}
	return start(settings, l, "http://"+l.Addr().String(), &http.Transport{MaxIdleConnsPerHost: 16})
}

// NewPipeServer starts a platform on a network in memory that only [Server.Client]
// reaches. Made inside a testing/synctest bubble, it lives in the bubble's time.
func NewPipeServer(settings Settings) *Server {
	l := newPipeListener()
	return start(settings, l, "http://agentjob.test", &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: 16})
}

func start(settings Settings, l net.Listener, url string, transport *http.Transport) *Server {
	s := &Server{
		URL: url, settings: settings.filled(), client: &http.Client{Transport: transport},
		closed: make(chan struct{}),
		agents: map[string]*Agent{}, keys: map[string]*Agent{}, tasks: map[string]*task{}, done: map[Route]int{},
		registry: newRegistry(),
	}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serveUntilClosed), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.http.Serve(l) }) // always http.ErrServerClosed
	return s
}

// Close ends every connection and waits for the server's goroutines.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	s.client.CloseIdleConnections()
	_ = s.http.Close() // connections that are gone already are no problem
	s.served.Wait()
}

// Client returns a client that reaches the server and keeps connections of its own.
func (s *Server) Client() *http.Client { return s.client }

// Configure changes the settings. A field set to zero gets its default again.
func (s *Server) Configure(change func(*Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.settings)
	s.settings = s.settings.filled()
	for _, a := range s.agents {
		a.tidy()
		a.bell.ring()
	}
}

// serveUntilClosed lets Close wait for the requests under way.
func (s *Server) serveUntilClosed(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	select {
	case <-s.closed:
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	default:
		s.served.Add(1) // never after closed, so never beside Wait
	}
	s.mu.Unlock()
	defer s.served.Done()
	s.ServeHTTP(w, r)
}

func (s *Server) now() time.Time { return s.settings.Now() }

// Route names an operation of the API.
type Route string

// The routes.
const (
	RouteRegister       Route = "POST register"
	RouteMe             Route = "GET me"
	RouteHeartbeat      Route = "POST heartbeat"
	RoutePoll           Route = "GET tasks"
	RouteProgress       Route = "GET progress"
	RouteReportProgress Route = "POST progress"
	RouteRespond        Route = "POST response"
)

// An answer is what a route says.
type answer struct {
	status int
	body   any // nil: none
}

type call struct {
	*http.Request
	body  []byte
	agent *Agent // of an authenticated route
	task  string // of a task route
}

// routes is the API. A path of "/tasks/*/x" stands for any task id, escaped.
var routes = map[string]struct {
	route  Route
	public bool
	serve  func(*Server, call) answer
}{
	"POST /api/register/auto":           {RouteRegister, true, (*Server).register},
	"GET /api/agents/me":                {RouteMe, false, (*Server).me},
	"POST /api/agents/heartbeat":        {RouteHeartbeat, false, (*Server).heartbeat},
	"GET /api/agents/tasks":             {RoutePoll, false, (*Server).poll},
	"GET /api/agents/tasks/*/progress":  {RouteProgress, false, (*Server).progress},
	"POST /api/agents/tasks/*/progress": {RouteReportProgress, false, (*Server).reportProgress},
	"POST /api/agents/tasks/*/response": {RouteRespond, false, (*Server).respond},
}

// pattern turns a request into a key of routes and the task id in its path.
func pattern(r *http.Request) (key, taskID string) {
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/api/agents/tasks/"); ok {
		if escaped, last, ok := strings.Cut(rest, "/"); ok {
			if id, err := url.PathUnescape(escaped); err == nil {
				return r.Method + " /api/agents/tasks/*/" + last, id
			}
		}
	}
	return r.Method + " " + path, ""
}

// ServeHTTP serves the API. To mount it under a prefix, use http.StripPrefix.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, taskID := pattern(r)
	rt, ok := routes[key]
	if !ok {
		s.write(w, http.StatusNotFound, "text/html; charset=utf-8", []byte("<!DOCTYPE html><title>404</title>"))
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		s.writeJSON(w, refuse(http.StatusRequestEntityTooLarge, "the body can't be read or is too large"))
		return
	}
	entry := s.enter(rt.route, r, body)
	serve := func() answer {
		c := call{Request: r, body: body, task: taskID}
		if !rt.public {
			if c.agent = s.authenticate(r); c.agent == nil {
				return refuse(http.StatusUnauthorized, "Invalid or missing API key")
			}
		}
		return rt.serve(s, c)
	}
	defer s.leave(rt.route, entry) // also when a fault aborts the connection
	if f := s.fault(rt.route); f != nil {
		f.apply(s, w, r, serve, taskID, entry)
		return
	}
	a := serve()
	entry.Status = a.status
	s.writeJSON(w, a)
}

func refuse(status int, message string) answer {
	return answer{status, map[string]any{"error": message}}
}

func (s *Server) authenticate(r *http.Request) *Agent {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.keys[key]
	if !ok || a == nil {
		return nil
	}
	a.tidy()
	return a
}

func (s *Server) writeJSON(w http.ResponseWriter, a answer) {
	s.write(w, a.status, "application/json; charset=utf-8", a.encode())
}

func (a answer) encode() []byte {
	if a.body == nil {
		return nil
	}
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(a.body); err != nil {
		panic("agentjobtest: encode an answer: " + err.Error()) // our own types
	}
	return bytes.TrimSpace(buf.Bytes())
}

func (s *Server) write(w http.ResponseWriter, status int, contentType string, body []byte) {
	s.mu.Lock()
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	s.mu.Unlock()
	if len(body) > 0 {
		w.Header().Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}
