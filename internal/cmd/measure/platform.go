package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Platform is the other side of every figure: a process that answers the provider's
// routes from memory, with as little work as that takes, so that its own time, which is in
// both sides of a comparison, hides as little as possible of the difference.
// agentjobtest is a truer platform and a slower one. The exported methods are called by the parent.
type Platform struct {
	http   *http.Server
	url    string
	parent context.Context // whom the exported methods serve

	mu       sync.Mutex
	hold     time.Duration // of a poll without a task, if that is less than it asks for
	batch    int
	messages json.RawMessage // of every task of the batch
	tasks    []job
	next     int // first task that is not handed out
	open     int // tasks without an accepted reply
	wrong    string
	held     int           // polls that wait
	empty    int           // polls that were answered without a task
	beat     time.Time     // first heartbeat of the batch
	tasked   chan struct{} // closed when there are new tasks: held polls look again
	changed  chan struct{} // closed at every change that the parent may wait for
}

// A job is a task of the batch.
type job struct{ claimed, accepted time.Time }

func servePlatform(ctx context.Context) (service any, done func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	p := &Platform{parent: ctx, url: "http://" + l.Addr().String(), tasked: make(chan struct{}), changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/agents/me", p.me)
	mux.HandleFunc("POST /api/agents/heartbeat", p.heartbeat)
	mux.HandleFunc("GET /api/agents/tasks", p.poll)
	mux.HandleFunc("GET /api/agents/tasks/{id}/progress", p.progress)
	mux.HandleFunc("POST /api/agents/tasks/{id}/response", p.respond)
	p.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols)}
	p.http.Protocols.SetHTTP1(true)
	p.http.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan error, 1)
	go func() { served <- p.http.Serve(l) }()
	return p, func() error {
		err := p.http.Close()
		if e := <-served; e != http.ErrServerClosed {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}

// ring lets those look again who wait for a channel. The lock is held.
func ring(bell *chan struct{}) {
	close(*bell)
	*bell = make(chan struct{})
}

// await returns with the lock held once the condition, read under it at each ring of the
// bell, holds. Otherwise it returns an error and no lock.
func (p *Platform) await(ctx context.Context, bell *chan struct{}, holds func() bool) error {
	for {
		p.mu.Lock()
		if holds() {
			return nil
		}
		rung := *bell
		p.mu.Unlock()
		select {
		case <-rung:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// agent is who asks: his key is his id.
func agent(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write([]byte(body)) // the client may have gone
}

func (p *Platform) me(w http.ResponseWriter, r *http.Request) {
	answer(w, fmt.Sprintf(`{"agent_id":%q}`, agent(r)))
}

func (p *Platform) heartbeat(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.beat.IsZero() {
		p.beat = time.Now()
		ring(&p.changed)
	}
	p.mu.Unlock()
	answer(w, `{"data":{"next_heartbeat_in_seconds":45}}`)
}

func (p *Platform) poll(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("wait"))
	if err != nil {
		http.Error(w, `{"error":"wait takes seconds"}`, http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	hold := time.Duration(seconds) * time.Second
	if p.hold > 0 {
		hold = min(hold, p.hold)
	}
	p.held++
	ring(&p.changed)
	p.mu.Unlock()
	over, cancel := context.WithTimeout(r.Context(), hold)
	defer cancel()
	err = p.await(over, &p.tasked, func() bool { return p.next < len(p.tasks) })
	if err != nil {
		p.mu.Lock()
		p.held--
		p.empty++
		ring(&p.changed)
		p.mu.Unlock()
		answer(w, `{"task":null}`)
		return
	}
	p.held--
	id := taskID(p.batch, p.next)
	p.tasks[p.next].claimed = time.Now()
	p.next++
	messages := p.messages
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, `{"task":{"id":%q,"chat_id":"chat","is_first_chat":false,"amount_usdc":"0.01","messages":%s}}`, id, messages)
}

// taskID is the id of the nth task of a batch.
func taskID(batch, n int) string { return fmt.Sprintf("task-%d-%d", batch, n) }

// job finds a task that was handed out. The lock is held.
func (p *Platform) job(id string) *job {
	prefix, number, _ := strings.Cut(strings.TrimPrefix(id, "task-"), "-")
	n, err := strconv.Atoi(number)
	if prefix != strconv.Itoa(p.batch) || err != nil || n < 0 || n >= p.next {
		return nil
	}
	return &p.tasks[n]
}

func (p *Platform) progress(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	j := p.job(r.PathValue("id"))
	p.mu.Unlock()
	if j == nil {
		http.Error(w, `{"error":"Task not found"}`, http.StatusNotFound)
		return
	}
	answer(w, fmt.Sprintf(`{"taskId":%q,"status":"processing","deadline":%q}`, r.PathValue("id"), time.Now().Add(30*time.Minute).UTC().Format(time.RFC3339)))
}

func (p *Platform) respond(w http.ResponseWriter, r *http.Request) {
	var in struct{ Text string }
	err := json.NewDecoder(r.Body).Decode(&in)
	id := r.PathValue("id")
	p.mu.Lock()
	switch j := p.job(id); {
	case err != nil || in.Text == "":
		p.wrong = "a reply without text"
	case j == nil:
		p.wrong = "a reply to a task that was not handed out"
	case !j.accepted.IsZero():
		p.wrong = "a second reply to a task"
	default:
		j.accepted = time.Now()
		p.open--
	}
	wrong := p.wrong
	if p.open == 0 || wrong != "" {
		ring(&p.changed)
	}
	p.mu.Unlock()
	if wrong != "" {
		http.Error(w, `{"error":"refused"}`, http.StatusNotFound)
		return
	}
	answer(w, fmt.Sprintf(`{"ok":true,"data":{"taskId":%q,"status":"completed"}}`, id))
}
