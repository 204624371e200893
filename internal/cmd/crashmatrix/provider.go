package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// ordersVariable makes this program the provider. It holds orders as JSON.
const ordersVariable = "AGENTJOB_CRASHMATRIX_PROVIDER"

// Orders are what a provider is told when it starts.
type orders struct {
	URL, Key   string
	Store, Dir string
	Moment     moment
	Sways      time.Duration
	Resume     bool           // set Config.Resume
	Sabotage   agentjob.State // acknowledge such records without writing them, to see that the judge notices
}

// Exit codes of a provider. None is that of a killed process or of a panic.
const (
	exitFailed  = 3
	exitRefused = 4 // another worker has the records
	exitOrphan  = 5 // its parent is gone
)

// provide is the provider's process: the real worker on the real store. It drains when its standard
// input ends, and so also when the parent is gone.
func provide(text string, in io.Reader, out io.Writer) (code int) {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintf(os.Stderr, "crashmatrix: %s is set for a child of this command only: %v\n", ordersVariable, err)
		return exitFailed
	}
	p := provider{newScript(o.Moment, o.Sways, out), o, rand.Text()}
	ctx, drain := context.WithCancel(context.Background())
	go func() {
		for words := bufio.NewScanner(in); words.Scan(); { // the one word is "go"
			p.goes <- struct{}{}
		}
		drain()
	}()
	began := time.Now()
	switch err := p.serve(ctx); {
	case errors.Is(err, agentjob.ErrLeaseHeld):
		p.say("refused", "", time.Since(began).String())
		return exitRefused
	case err != nil:
		p.say("stopped", "", err.Error())
		return exitFailed
	}
	return 0
}

type provider struct {
	*script
	orders
	nonce string // of this process
}

func (p provider) serve(ctx context.Context) (err error) {
	var records closer
	err = p.step("open store", func() (err error) {
		records, err = openStore(p.Store, p.Dir)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.step("close store", records.Close)) }()
	client, err := agentjob.NewClient(agentjob.ClientConfig{
		APIKey: secret.New(p.Key), BaseURL: p.URL,
		HTTPClient: &http.Client{Transport: transport{p.script, &http.Transport{}}},
	})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	config := agentjob.Config{
		Client: client, Handler: agentjob.HandlerFunc(p.handle), Store: store{p.script, records, p.Sabotage},
		PollWait: time.Second, Observe: p.observe,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if p.Resume {
		config.Resume = p.resume
	}
	worker, err := agentjob.NewWorker(config)
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

func (p provider) observe(e agentjob.Event) {
	p.say("event", e.TaskID, cmp.Or(string(e.End), string(e.Kind)))
}

func (p provider) handle(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
	p.say("handle", task.ID, p.nonce) // before anything else: what ran, ran
	return p.answer(ctx, task, "handler")
}

func (p provider) resume(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
	p.say("resume", task.ID, p.nonce)
	return p.answer(ctx, task, "resume")
}

// answer makes a reply that tells the task and the process, so that one which was made again shows.
func (p provider) answer(ctx context.Context, task *agentjob.Task, who string) (*agentjob.Reply, error) {
	p.reach(who + " starts")
	task.Progress("at work", nil)
	select {
	case <-p.past("after POST progress"):
	case <-p.past("failed POST progress"):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.reach(who + " works")
	text := fmt.Sprintf("Answer to %s, made by %s.", task.ID, p.nonce)
	p.say("reply", task.ID, text)
	p.reach(who + " is done")
	return agentjob.Text(text), nil
}
