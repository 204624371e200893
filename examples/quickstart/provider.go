package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

const agentName = "Shopping list"

func registrationFile(state string) string { return filepath.Join(state, "registration.json") }
func recordsFile(state string) string      { return filepath.Join(state, "agentjob.db") }

// A provider is the agent at work: registered once, with its records in the state folder.
type provider struct {
	platform string // URL
	state    string
	out      io.Writer       // what happens, a line each
	stop     <-chan struct{} // closed: don't wait for the drain
}

// run serves until ctx ends.
func (p provider) run(ctx context.Context) (err error) {
	registration, err := p.register(ctx)
	if err != nil {
		return err
	}
	store, err := boltstore.Open(recordsFile(p.state), boltstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := p.showRecords(ctx, store, registration.AgentID); err != nil {
		return err
	}
	client, err := agentjob.NewClient(agentjob.ClientConfig{APIKey: registration.APIKey, BaseURL: p.platform})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	worker, err := agentjob.NewWorker(agentjob.Config{
		Client:      client,
		Store:       store,
		Handler:     agentjob.HandlerFunc(shop),
		Concurrency: 2,
		Observe:     p.observer(),
		Logger:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-p.stop:
			worker.Stop()
		case <-over:
		}
	})
	err = worker.Run(ctx)
	close(over)
	watching.Wait()
	return err
}

func (p provider) say(verb, format string, args ...any) {
	say(p.out, "provider", verb, format, args...)
}

// say prints one line: who, what, and more of it.
func say(out io.Writer, who, verb, format string, args ...any) {
	line := fmt.Sprintf("%-9s %-11s %s", who, verb, fmt.Sprintf(format, args...))
	_, _ = fmt.Fprintln(out, strings.TrimRight(line, " ")) // nobody to tell if nobody reads
}

// register returns the agent in the state folder, or makes one.
func (p provider) register(ctx context.Context) (*agentjob.Registration, error) {
	_, err := agentjob.LoadRegistration(registrationFile(p.state))
	found := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: p.platform})
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	registration, err := client.Register(ctx, agentjob.RegisterOptions{File: registrationFile(p.state), AgentName: agentName})
	if err != nil {
		return nil, err
	}
	if registration.Outcome != agentjob.Registered {
		return nil, fmt.Errorf("agent %s exists, but the platform did not hand out its key again (%s); get a new key by a reset in the dashboard",
			registration.AgentID, registration.Outcome)
	}
	if found {
		p.say("found", "the registration of agent %s", short(registration.AgentID))
	} else {
		p.say("registered", "agent %s", short(registration.AgentID))
	}
	return registration, nil
}

// showRecords says what an earlier run left.
func (p provider) showRecords(ctx context.Context, store agentjob.Store, agentID string) error {
	lease, err := store.Acquire(ctx, agentID)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for record, err := range lease.Records(ctx) {
		if err != nil {
			return errors.Join(err, lease.Close())
		}
		what := string(record.State)
		if record.State == agentjob.StateEnded {
			what = string(record.End)
		}
		counts[what]++
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
	}
	if len(parts) > 0 {
		p.say("found", "records of an earlier run: %s", strings.Join(parts, ", "))
	}
	return lease.Close()
}

// observer prints the events that tell the story. Failures go to the log.
func (p provider) observer() func(agentjob.Event) {
	online := sync.OnceFunc(func() { p.say("online", "") })
	return func(e agentjob.Event) {
		switch e.Kind {
		case agentjob.EventHeartbeat:
			online()
		case agentjob.EventClaimed, agentjob.EventSaved, agentjob.EventDuplicate:
			p.say(string(e.Kind), "%s", short(e.TaskID))
		case agentjob.EventEnded:
			p.say(string(e.End), "%s (%v after the claim)", short(e.TaskID), e.Elapsed.Round(time.Millisecond))
		case agentjob.EventDraining, agentjob.EventStopped:
			p.say(string(e.Kind), "")
		}
	}
}

// short is enough of an id to tell it from others by eye.
func short(id string) string { return id[:min(8, len(id))] }
