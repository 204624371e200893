package baddisk

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/connections/secret"
)

const patience = 2 * time.Minute // no wait takes longer on a machine that works at all

// A world is a platform with one agent, and the place of its worker's store.
type world struct {
	*testing.T
	kind   kind
	path   string
	srv    *agentjobtest.Server
	agent  *agentjobtest.Agent
	client *agentjob.Client

	mu       sync.Mutex
	asked    []question
	runs     map[string]int
	release  chan struct{} // handlers of "wait" go on when it is closed
	events   map[agentjob.EventKind]int
	failures int // writes of the store that failed
}

func newWorld(t *testing.T, k kind, path string) *world {
	w := &world{
		T: t, kind: k, path: path, srv: agentjobtest.NewServer(agentjobtest.Settings{HeartbeatInterval: time.Second, MaxConcurrentChats: 100}),
		runs: map[string]int{}, release: make(chan struct{}), events: map[agentjob.EventKind]int{},
	}
	t.Cleanup(w.srv.Close)
	w.agent = w.srv.AddAgent("An agent")
	var err error
	w.client, err = agentjob.NewClient(agentjob.ClientConfig{BaseURL: w.srv.URL, APIKey: secret.New(w.agent.Key), HTTPClient: w.srv.Client()})
	require.NoError(t, err)
	return w
}

type question struct {
	*agentjobtest.Message
	text string
}

// reply is large, so that no store finds a place for it on a full disk; the one to "held" is small, since
// its place can be used again.
func reply(question string) string {
	if question == "held" {
		return "a short reply"
	}
	return question + strings.Repeat(" and more of it", 5000)
}

func (w *world) handle(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
	w.mu.Lock()
	w.runs[task.ID]++
	release := w.release
	w.mu.Unlock()
	if task.LastUserText() == "wait" {
		select {
		case <-release:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return agentjob.Text(reply(task.LastUserText())), nil
}

// letGo lets waiting handlers answer, and later ones not wait.
func (w *world) letGo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.release)
}

// A running worker.
type running struct {
	*agentjob.Worker
	w     *world
	store localStore
	done  chan error
}

// start opens the store and runs a worker, or returns the error of opening it.
func (w *world) start() (*running, error) {
	w.Helper()
	store, err := w.kind.open(w.path)
	if err != nil {
		return nil, err
	}
	worker, err := agentjob.NewWorker(agentjob.Config{
		Client: w.client, Handler: agentjob.HandlerFunc(w.handle), Store: watched{store, w}, Concurrency: 2, DrainTimeout: time.Second, StuckGrace: time.Second,
		Observe: func(e agentjob.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events[e.Kind]++
		},
	})
	require.NoError(w, err)
	r := &running{Worker: worker, w: w, store: store, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(w.Context())
	go func() {
		defer cancel()
		r.done <- worker.Run(ctx)
	}()
	w.Cleanup(func() { // for a test that ended early
		cancel()
		r.end()
	})
	return r, nil
}

// serve starts a worker that must run.
func (w *world) serve() *running {
	w.Helper()
	r, err := w.start()
	require.NoError(w, err)
	return r
}

// wait returns what Run returned, with what closing the store did.
func (r *running) wait() error {
	err := <-r.done
	r.done <- err // for the next who asks
	return errors.Join(err, r.store.Close())
}

func (r *running) end() error {
	r.Drain()
	return r.wait()
}

// watched counts the writes that fail.
type watched struct {
	agentjob.Store
	w *world
}

type watchedLease struct {
	agentjob.Lease
	w *world
}

func (s watched) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	return watchedLease{lease, s.w}, nil
}

func (s watched) BindProvider(ctx context.Context, fingerprint, provider string) error {
	return s.w.count(s.Store.BindProvider(ctx, fingerprint, provider))
}

func (l watchedLease) Put(ctx context.Context, rec agentjob.Record) error {
	return l.w.count(l.Lease.Put(ctx, rec))
}

func (w *world) count(err error) error {
	if err != nil {
		w.mu.Lock()
		w.failures++
		w.mu.Unlock()
	}
	return err
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	require.Eventually(w, holds, patience, 10*time.Millisecond, what)
}

func (w *world) online() {
	w.Helper()
	w.eventually("the agent is online", w.agent.Online)
}

func (w *world) seen(kind agentjob.EventKind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events[kind]
}

func (w *world) ran(m *agentjobtest.Message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[m.ID] > 0
}

func (w *world) failed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failures
}

// ask sends a message of a new customer, whether the agent is online or not.
func (w *world) ask(text string) *agentjobtest.Message {
	w.Helper()
	m, err := w.srv.User("alice").Chat(w.agent).SendMessage(agentjobtest.MessageOptions{Text: text, Queue: true})
	require.NoError(w, err)
	w.asked = append(w.asked, question{m, text})
	return m
}

// held asks something whose reply is saved and can't be delivered until the fault is cleared.
func (w *world) held() (*agentjobtest.Message, *agentjobtest.Injection) {
	w.Helper()
	fault := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
	before := w.seen(agentjob.EventDeliveryRetry)
	m := w.ask("held")
	w.eventually("a reply is saved and not delivered", func() bool { return w.seen(agentjob.EventDeliveryRetry) > before })
	return m, fault
}

func (w *world) requests(route agentjobtest.Route) (n int) {
	for _, r := range w.srv.Requests() {
		if r.Route == route {
			n++
		}
	}
	return n
}

// notServed checks that nothing is claimed, and no heartbeat sent, while the store goes on failing: for
// some seconds, in which there would be a heartbeat each second.
func (w *world) notServed(r *running) {
	w.Helper()
	w.eventually("the worker says that the store fails", func() bool { return r.Status().Waiting["store fails"] != nil })
	w.tried(8) // a poll that was under way has a second to end
	queued := w.ask("while the store fails")
	beats, polls := w.agent.Beats(), w.requests(agentjobtest.RoutePoll)
	w.tried(4)
	require.Equal(w, agentjobtest.StatusQueued, queued.Status(), "it was claimed")
	require.Equal(w, beats, w.agent.Beats(), "heartbeats")
	require.Equal(w, polls, w.requests(agentjobtest.RoutePoll), "polls")
}

// tried waits until some more writes have failed. Each waits up to two seconds for the next.
func (w *world) tried(writes int) {
	w.Helper()
	before := w.failed()
	w.eventually("the store is tried again and again", func() bool { return w.failed() >= before+writes })
}

// answered waits until all messages have their replies, but those in lost, and checks that each came once, by one run.
func (w *world) answered(lost ...*agentjobtest.Message) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	gone := map[string]bool{}
	for _, m := range lost {
		gone[m.ID] = true
	}
	for _, m := range w.asked {
		if gone[m.ID] {
			require.Zero(w, m.Counts().Deliveries)
			continue
		}
		text, err := m.WaitReply(ctx)
		require.NoError(w, err, "%q is %s, %+v", m.text, m.Status(), m.Counts())
		require.Equal(w, reply(m.text), text)
		counts := m.Counts()
		require.Equal(w, 1, counts.Claims)
		require.Equal(w, 1, counts.Deliveries)
		w.mu.Lock()
		require.Equal(w, 1, w.runs[m.ID], "runs of the handler")
		w.mu.Unlock()
	}
}

// finished ends a worker that must have written everything, and looks into the store.
func (w *world) finished(r *running) {
	w.Helper()
	w.eventually("the store works", func() bool { return r.Status().Open })
	require.NoError(w, r.end())
	store, err := w.kind.open(w.path)
	require.NoError(w, err)
	defer store.Close()
	lease, err := store.Acquire(w.Context(), w.agent.ID)
	require.NoError(w, err)
	records := 0
	for rec, err := range lease.Records(w.Context()) {
		require.NoError(w, err)
		require.Equal(w, agentjob.StateEnded, rec.State)
		records++
	}
	require.Equal(w, len(w.asked), records)
}
