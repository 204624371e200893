package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
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
	http *http.Server
	url  string

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

func servePlatform() (service any, done func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	p := &Platform{url: "http://" + l.Addr().String(), tasked: make(chan struct{}), changed: make(chan struct{})}
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

// URL tells where the platform is.
func (p *Platform) URL(_ None, url *string) error {
	*url = p.url
	return nil
}

// Hold makes polls without a task end after this time.
func (p *Platform) Hold(d time.Duration, _ *None) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = d
	return nil
}

// AwaitHeld returns when so many polls wait or, for 0, when none does.
func (p *Platform) AwaitHeld(n int, _ *None) error {
	if err := p.await(context.Background(), &p.changed, func() bool { return p.held >= n && (n > 0 || p.held == 0) }); err != nil {
		return err
	}
	p.mu.Unlock()
	return nil
}

// Empty tells how many polls were answered without a task.
func (p *Platform) Empty(_ None, n *int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n = p.empty
	return nil
}

// A Batch is what to hand out.
type Batch struct {
	Tasks    int
	Messages int  // in each of their conversations
	Claimed  bool // they were handed out long ago: only their replies are to come
}

// Prepare replaces the tasks by new ones and returns their batch's number.
func (p *Platform) Prepare(b Batch, number *int) error {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	conversation := make([]message, b.Messages)
	for i := range conversation {
		conversation[i] = message{[]string{"user", "assistant"}[i%2], fmt.Sprintf("Message %d of a conversation that goes on and on, as they do, until all is said.", i)}
	}
	text, err := json.Marshal(conversation)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch++
	p.messages, p.tasks = text, make([]job, b.Tasks)
	p.next, p.open, p.wrong, p.beat = 0, b.Tasks, "", time.Time{}
	if b.Claimed {
		p.next = b.Tasks
	}
	ring(&p.tasked)
	*number = p.batch
	return nil
}

// Outcome is how a batch went.
type Outcome struct {
	First, Last time.Time     // the first claim, zero if there was none, and the last reply accepted
	P50, P99    time.Duration // from a claim to its accepted reply
}

// AwaitReplies returns when every task of the batch has its reply. More than one, or one that
// was not asked for, is an error.
func (p *Platform) AwaitReplies(_ None, out *Outcome) error {
	if err := p.await(context.Background(), &p.changed, func() bool { return p.open == 0 || p.wrong != "" }); err != nil {
		return err
	}
	defer p.mu.Unlock()
	if p.wrong != "" {
		return errors.New("the platform got " + p.wrong)
	}
	var took []time.Duration
	for i, j := range p.tasks {
		if i == 0 || j.claimed.Before(out.First) {
			out.First = j.claimed
		}
		if j.accepted.After(out.Last) {
			out.Last = j.accepted
		}
		took = append(took, j.accepted.Sub(j.claimed))
	}
	slices.Sort(took)
	out.P50, out.P99 = took[len(took)/2], took[len(took)*99/100]
	return nil
}

// AwaitBeat returns when the first heartbeat since the last Prepare came.
func (p *Platform) AwaitBeat(_ None, at *time.Time) error {
	if err := p.await(context.Background(), &p.changed, func() bool { return !p.beat.IsZero() }); err != nil {
		return err
	}
	defer p.mu.Unlock()
	*at = p.beat
	return nil
}
