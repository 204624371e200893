package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// childVariable makes this program the provider that is traced.
const childVariable = "AGENTJOB_POWERCUT_CHILD"

// An assignment is what the provider is told in it.
type assignment struct {
	Store, Folder, URL, Key string
}

// serve is the provider: the real worker on the real store. It tells on out, a line and a write each, what
// the trace could not show otherwise. A line of in makes it drain, close the store and begin again; the end of in ends it.
func serve(a assignment, in io.Reader, out io.Writer) error {
	k, err := kindNamed(a.Store)
	if err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	for life := 1; ; life++ {
		client, err := agentjob.NewClient(agentjob.ClientConfig{APIKey: secret.New(a.Key), BaseURL: a.URL, UserAgent: userAgent(life)})
		if err != nil {
			return err
		}
		store, err := k.open(a.Folder)
		if err != nil {
			return err
		}
		again, err := serveOnce(client, &witness{store, teller{out}}, lines)
		if err = errors.Join(err, store.Close()); err != nil || !again {
			return err
		}
	}
}

func serveOnce(client *agentjob.Client, store *witness, lines <-chan string) (again bool, err error) {
	worker, err := agentjob.NewWorker(agentjob.Config{
		Client: client, Store: store, Concurrency: 5,
		Handler: agentjob.HandlerFunc(func(_ context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			store.tell("RUN", task.ID)
			return answer(task.ID)
		}),
		Observe: func(e agentjob.Event) {
			if e.Kind == agentjob.EventEnded {
				store.tell("END", e.TaskID)
			}
		},
	})
	if err != nil {
		return false, err
	}
	done := make(chan error, 1)
	go func() { done <- worker.Run(context.Background()) }()
	select {
	case err := <-done:
		return false, errors.Join(errors.New("the worker ended by itself"), err)
	case _, again = <-lines:
	}
	worker.Drain()
	return again, <-done
}

// answer is the reply of a task: of one line up to some pages, or, for one task in eight, none.
func answer(taskID string) (*agentjob.Reply, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(taskID)) // never fails
	n := int(h.Sum32())
	if n%8 == 0 {
		return nil, errors.New("no answer to this one")
	}
	return agentjob.Text(strings.Repeat("The answer to "+taskID+". ", 1+n%(1<<(n%11)))), nil
}

// A teller writes each line at once.
type teller struct{ out io.Writer }

func (t teller) tell(what, name string) {
	if _, err := fmt.Fprintf(t.out, "%s %s\n", what, name); err != nil {
		panic("powercut: the parent has gone: " + err.Error())
	}
}

// A witness tells of every write that the store has acknowledged as durable.
type witness struct {
	agentjob.Store
	teller
}

func (w *witness) BindProvider(ctx context.Context, fingerprint, provider string) error {
	err := w.Store.BindProvider(ctx, fingerprint, provider)
	if err == nil {
		w.tell("BOUND", fingerprint)
	}
	return err
}

func (w *witness) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := w.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	return &witnessedLease{lease, w.teller}, nil
}

type witnessedLease struct {
	agentjob.Lease
	teller
}

func (l *witnessedLease) Put(ctx context.Context, rec agentjob.Record) error {
	err := l.Lease.Put(ctx, rec)
	if err == nil && rec.State != agentjob.StateEnded { // that may be lost
		l.tell(strings.ToUpper(string(rec.State)), rec.TaskID)
	}
	return err
}

// childMain runs the provider if this process is to be it.
func childMain() (isChild bool) {
	text := os.Getenv(childVariable)
	if text == "" {
		return false
	}
	var a assignment
	err := json.Unmarshal([]byte(text), &a)
	if err == nil {
		err = serve(a, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "powercut: the provider:", err)
		os.Exit(1)
	}
	return true
}
