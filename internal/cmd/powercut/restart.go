package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// restartTime bounds one restart, so that a worker that hangs is an error.
const restartTime = 30 * time.Second

// A life is what a restarted worker does.
type life struct {
	userAgent string

	mu      sync.Mutex
	ran     map[string]bool
	over    map[string]bool   // ended, or refused as known
	sent    map[string][]byte // bodies of replies
	changed chan struct{}
}

func newLife(userAgent string) *life {
	return &life{userAgent: userAgent, ran: map[string]bool{}, over: map[string]bool{}, sent: map[string][]byte{}, changed: make(chan struct{}, 1)}
}

func (l *life) note(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *life) handle(_ context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
	l.note(func() { l.ran[task.ID] = true })
	return agentjob.Text("Not the first answer to " + task.ID), nil
}

func (l *life) observe(e agentjob.Event) {
	if e.Kind == agentjob.EventEnded || e.Kind == agentjob.EventDuplicate {
		l.note(func() { l.over[e.TaskID] = true })
	}
}

// RoundTrip keeps the replies that leave.
func (l *life) RoundTrip(request *http.Request) (*http.Response, error) {
	if id, ok := strings.CutSuffix(request.URL.Path, "/response"); ok {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		l.note(func() { l.sent[id[strings.LastIndex(id, "/")+1:]] = data })
	}
	return http.DefaultTransport.RoundTrip(request)
}

// await returns when all these tasks are over.
func (l *life) await(ctx context.Context, tasks []string) error {
	for {
		l.mu.Lock()
		var left []string
		for _, id := range tasks {
			if !l.over[id] {
				left = append(left, id)
			}
		}
		l.mu.Unlock()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-l.changed:
		case <-ctx.Done():
			return fmt.Errorf("a restarted worker did not come to an end with the tasks %s: %w", strings.Join(left, ", "), ctx.Err())
		}
	}
}

// restart starts the real worker in an image, has the platform hand out again the task that ran last
// before the power cut, and for comparison one that is unknown in the image, and judges what it does.
func (l *looker) restart(ctx context.Context, image systrace.Image, f found, e *expected) (t tally, err error) {
	t.states = 1
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	w := newLife(l.next())
	fresh := l.unknown(f, e)
	var tasks []string // that must come to an end
	for id, rec := range f.records {
		if rec.State != agentjob.StateEnded {
			tasks = append(tasks, id)
		}
	}
	for _, id := range []string{fresh, e.last} {
		if id != "" {
			l.platform.HandOutAgain(id)
			tasks = append(tasks, id)
		}
	}
	err = rebuilt(image, func(folder string) error { return l.live(ctx, w, folder, tasks) })
	if errors.Is(err, agentjob.ErrStoreDamaged) {
		t.count(&t.unopenable, "the worker ended: %v", err)
		return t, nil
	}
	if err == nil && fresh != "" && !w.ran[fresh] {
		err = fmt.Errorf("the restarted worker did not run the new task %s: so it proves nothing by not running others", fresh)
	}
	for id := range w.ran {
		if e.ran[id] {
			t.count(&t.rerun, "task %s: the restarted worker ran it again", id)
		}
	}
	for id, body := range w.sent {
		if e.ran[id] && !bytes.Equal(body, l.replies[id]) {
			t.count(&t.rerun, "task %s: the restarted worker sent another reply than the first one", id)
		}
	}
	for id := range e.saved {
		if _, sentAgain := w.sent[id]; !sentAgain && f.records[id].State != agentjob.StateEnded {
			t.count(&t.lost, "task %s: acknowledged as saved, and the restarted worker sent nothing", id)
		}
	}
	return t, err
}

// unknown returns a task that a worker in this state has to take for a new one, if there is one.
func (l *looker) unknown(f found, e *expected) string {
	for _, m := range l.marks {
		if _, known := f.records[m.name]; m.what == "RUN" && !known && !e.ran[m.name] {
			return m.name
		}
	}
	return ""
}

// live runs a worker until these tasks are over.
func (l *looker) live(ctx context.Context, w *life, folder string, tasks []string) error {
	store, err := l.kind.open(folder)
	if err != nil {
		return err
	}
	client, err := agentjob.NewClient(agentjob.ClientConfig{
		APIKey: secret.New(l.agent.Key), BaseURL: l.front.URL, UserAgent: w.userAgent, HTTPClient: &http.Client{Transport: w},
	})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	worker, err := agentjob.NewWorker(agentjob.Config{Client: client, Store: store, Handler: agentjob.HandlerFunc(w.handle), Observe: w.observe})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	ended := make(chan error, 1)
	waiting, stop := context.WithCancel(ctx)
	go func() {
		ended <- worker.Run(context.WithoutCancel(ctx))
		stop() // nothing will come any more
	}()
	err = w.await(waiting, tasks)
	worker.Drain()
	if err != nil {
		worker.Stop()
	}
	err = errors.Join(<-ended, store.Close(), err)
	stop()
	return err
}
