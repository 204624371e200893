package agentjob_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// A world is a platform with one agent and one store, in a bubble's virtual time.
type world struct {
	*testing.T
	srv    *agentjobtest.Server
	agent  *agentjobtest.Agent
	store  *agentjobtest.Store
	client *agentjob.Client

	mu     sync.Mutex
	events []agentjob.Event
	log    bytes.Buffer
}

// inWorld runs a test in a bubble. Goroutines that are left fail it.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, srv: agentjobtest.NewPipeServer(agentjobtest.Settings{}), store: agentjobtest.NewStore()}
		t.Cleanup(w.srv.Close)
		w.agent = w.srv.AddAgent("Test agent")
		w.client = w.newClient(w.agent.Key)
		test(w)
	})
}

func (w *world) newClient(key string) *agentjob.Client {
	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: w.srv.URL, APIKey: secret.New(key), HTTPClient: w.srv.Client()})
	require.NoError(w, err)
	return client
}

// A running worker.
type running struct {
	*agentjob.Worker
	w      *world
	cancel context.CancelFunc
	done   chan error
}

// run starts a worker with a handler; change may alter the configuration.
func (w *world) run(handler agentjob.HandlerFunc, change ...func(*agentjob.Config)) *running {
	w.Helper()
	cfg := agentjob.Config{
		Client: w.client, Store: w.store, Handler: handler, Observe: w.observe,
		Logger: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&cfg)
	}
	worker, err := agentjob.NewWorker(cfg)
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Worker: worker, w: w, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- worker.Run(ctx) }()
	w.Cleanup(cancel)
	return r
}

// end drains the worker and returns what Run returned.
func (r *running) end() error {
	r.Drain()
	return r.wait()
}

func (r *running) wait() error {
	defer r.cancel()
	err := <-r.done
	synctest.Wait() // the platform notices that a poll was given up
	return err
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) observe(e agentjob.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// seen returns the events of one kind.
func (w *world) seen(kind agentjob.EventKind) []agentjob.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.events), func(e agentjob.Event) bool { return e.Kind != kind })
}

// ends returns how tasks ended, in order.
func (w *world) ends() (out []agentjob.End) {
	for _, e := range w.seen(agentjob.EventEnded) {
		out = append(out, e.End)
	}
	return out
}

// record returns the stored record of a task.
func (w *world) record(taskID string) agentjob.Record {
	w.Helper()
	for _, rec := range w.store.Records(w.agent.ID) {
		if rec.TaskID == taskID {
			return rec
		}
	}
	w.Fatalf("no record of task %q", taskID)
	return agentjob.Record{}
}

// send sends a message of a new customer, whether the agent is online or not.
func (w *world) send(text string) *agentjobtest.Message {
	w.Helper()
	return w.sendMessage(agentjobtest.MessageOptions{Text: text, Queue: true})
}

func (w *world) sendMessage(o agentjobtest.MessageOptions) *agentjobtest.Message {
	w.Helper()
	o.Queue = true
	m, err := w.srv.User("alice").Chat(w.agent).SendMessage(o)
	require.NoError(w, err)
	return m
}

// reply waits for the reply of a message, an hour at most.
func (w *world) reply(m *agentjobtest.Message) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	text, err := m.WaitReply(ctx)
	require.NoError(w, err)
	return text
}

// claimed returns once a message has been handed out and the answer has arrived.
func (w *world) claimed(m *agentjobtest.Message) {
	w.Helper()
	require.NoError(w, m.WaitClaim(context.Background()))
	synctest.Wait()
}

// pass lets virtual time pass.
func (w *world) pass(d time.Duration) { <-time.After(d) }

// requests counts the requests of a route.
func (w *world) requests(route agentjobtest.Route) (n int) {
	for _, r := range w.srv.Requests() {
		if r.Route == route {
			n++
		}
	}
	return n
}

// echo answers with the last message.
func echo(_ context.Context, t *agentjob.Task) (*agentjob.Reply, error) {
	return agentjob.Text("You said: " + t.LastUserText()), nil
}

// A counted handler counts its runs.
type counted struct {
	mu   sync.Mutex
	runs map[string]int
	next agentjob.HandlerFunc
}

func counting(next agentjob.HandlerFunc) *counted {
	return &counted{runs: map[string]int{}, next: next}
}

func (c *counted) handle(ctx context.Context, t *agentjob.Task) (*agentjob.Reply, error) {
	c.mu.Lock()
	c.runs[t.ID]++
	c.mu.Unlock()
	return c.next(ctx, t)
}

func (c *counted) count(taskID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[taskID]
}

// untilDone waits for the context's end and returns its cause.
func untilDone(ctx context.Context, _ *agentjob.Task) (*agentjob.Reply, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

var errHandler = errors.New("handler failed")
