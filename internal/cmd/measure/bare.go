package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// A bare provider sends the requests of a worker, header for header, with net/http and nothing
// around them: no retries, no deadlines, no second look at an answer. It is what a figure is compared with.
type bare struct {
	http     *http.Client
	url, key string
}

// do sends a request and reads the answer's JSON into out, if that is not nil.
func (b bare) do(ctx context.Context, method, path string, body []byte, out any) error {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "agentjob-go")
	req.Header.Set("Authorization", "Bearer "+b.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %d", method, path, resp.StatusCode)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// A bareTask is what the loop reads of a task.
type bareTask struct {
	ID       string
	ChatID   string `json:"chat_id"`
	Messages []struct{ Role, Content string }
}

// poll returns nil if there is no task.
func (b bare) poll(ctx context.Context, seconds int) (*bareTask, error) {
	var out struct{ Task *bareTask }
	err := b.do(ctx, "GET", fmt.Sprintf("/api/agents/tasks?wait=%d", seconds), nil, &out)
	return out.Task, err
}

// A bareLook is what it reads of a task's progress.
type bareLook struct {
	Status   string
	Deadline time.Time
}

func (b bare) look(ctx context.Context, taskID string, out *bareLook) error {
	return b.do(ctx, "GET", "/api/agents/tasks/"+taskID+"/progress", nil, out)
}

func (b bare) respond(ctx context.Context, taskID string, body []byte) error {
	var out struct{ OK bool }
	return b.do(ctx, "POST", "/api/agents/tasks/"+taskID+"/response", body, &out)
}

// serve answers tasks until ctx ends, several at a time, with the calls and the durable
// commits of a worker: poll, claimed, look, saved, respond, ended.
func (b bare) serve(ctx context.Context, lease agentjob.Lease, concurrency int) error {
	return together(concurrency, func(int) error {
		for {
			task, err := b.poll(ctx, 25)
			if err == nil && task != nil {
				err = b.answer(ctx, lease, task)
			}
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

func (b bare) answer(ctx context.Context, lease agentjob.Lease, task *bareTask) error {
	rec := agentjob.Record{Provider: b.key, TaskID: task.ID, ChatID: task.ChatID, State: agentjob.StateClaimed, ClaimedAt: time.Now()}
	if err := lease.Put(ctx, rec); err != nil {
		return err
	}
	var look bareLook
	if err := b.look(ctx, task.ID, &look); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"text": replyText})
	if err != nil {
		return err
	}
	rec.State, rec.SavedAt, rec.Deadline = agentjob.StateSaved, time.Now(), look.Deadline
	rec.Content.Response = body
	if err := lease.Put(ctx, rec); err != nil {
		return err
	}
	if err := b.respond(ctx, task.ID, body); err != nil {
		return err
	}
	rec.State, rec.EndedAt, rec.End = agentjob.StateEnded, time.Now(), agentjob.EndDelivered
	rec.Content = agentjob.Content{}
	return lease.Put(ctx, rec)
}

// together runs n goroutines and returns the first error, when all have ended.
func together(n int, do func(i int) error) error {
	errs := make(chan error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs <- do(i) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
