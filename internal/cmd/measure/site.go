package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// provider is the one agent of most figures: its id and its key.
const provider = "provider"

// replyText is what every handler answers.
var replyText = strings.Repeat("A reply of some length. ", 20)

// A site has a platform in a process of its own.
type site struct {
	*bench
	platform *child
	url      string
}

// newSite starts a platform.
func newSite(ctx context.Context, b *bench) (*site, error) {
	platform, err := startChild(ctx, "Platform")
	if err != nil {
		return nil, err
	}
	s := &site{bench: b, platform: platform}
	if err := platform.call(ctx, "URL", None{}, &s.url); err != nil {
		return nil, errors.Join(err, platform.stop())
	}
	return s, nil
}

// prepare gives the platform new tasks and returns their batch's number.
func (s *site) prepare(ctx context.Context, b Batch) (number int, err error) {
	err = s.platform.call(ctx, "Prepare", b, &number)
	return number, err
}

func (s *site) awaitReplies(ctx context.Context) (out Outcome, err error) {
	err = s.platform.call(ctx, "AwaitReplies", None{}, &out)
	return out, err
}

// awaitHeld returns when so many polls wait at the platform or, for 0, when none does.
func (s *site) awaitHeld(ctx context.Context, n int) error {
	return s.platform.call(ctx, "AwaitHeld", n, &None{})
}

// transport is what both sides of a comparison use, with room for all connections.
func transport() *http.Transport { return &http.Transport{MaxIdleConnsPerHost: 64} }

// A shelf is a store in a folder of its own, which goes with it.
type shelf struct {
	*boltstore.Store
	dir string
}

func (b *bench) newShelf() (*shelf, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	store, err := boltstore.Open(filepath.Join(dir, "records"), boltstore.Options{})
	if err != nil {
		return nil, err
	}
	return &shelf{store, dir}, nil
}

// Close closes the store and removes it.
func (s *shelf) Close() error { return errors.Join(s.Store.Close(), os.RemoveAll(s.dir)) }

// A party answers tasks of the site: the worker, or the bare loop.
type party struct {
	polls   int // that wait at the platform while there is no task
	end     context.CancelFunc
	ended   chan error
	cleanup func() error
}

// stop ends the party and returns why it ended, if not for this.
func (p *party) stop() error {
	p.end()
	return errors.Join(<-p.ended, p.cleanup())
}

// startWorker runs a worker on a store.
func (s *site) startWorker(store *shelf, concurrency int, handler agentjob.HandlerFunc) (*party, error) {
	t := transport()
	worker, err := newWorker(s.url, provider, t, store, agentjob.Config{Concurrency: concurrency, Handler: handler})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &party{polls: 1, end: cancel, ended: make(chan error, 1), cleanup: func() error {
		t.CloseIdleConnections()
		return nil
	}}
	go func() { p.ended <- worker.Run(ctx) }()
	return p, nil
}

// newWorker completes a configuration.
func newWorker(url, key string, t http.RoundTripper, store agentjob.Store, c agentjob.Config) (*agentjob.Worker, error) {
	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: url, APIKey: secret.New(key), HTTPClient: &http.Client{Transport: t}})
	if err != nil {
		return nil, err
	}
	c.Client, c.Store = client, store
	return agentjob.NewWorker(c)
}

// startBare runs the bare loop on a store.
func (s *site) startBare(store *shelf, concurrency int) (*party, error) {
	ctx, cancel := context.WithCancel(context.Background())
	lease, err := store.Acquire(ctx, provider)
	if err != nil {
		cancel()
		return nil, err
	}
	t := transport()
	p := &party{polls: concurrency, end: cancel, ended: make(chan error, 1), cleanup: func() error {
		t.CloseIdleConnections()
		return lease.Close()
	}}
	go func() { p.ended <- bare{&http.Client{Transport: t}, s.url, provider}.serve(ctx, lease, concurrency) }()
	return p, nil
}

// serves measures how a party, on a new store, answers a batch.
func (s *site) serves(b Batch, start func(*shelf) (*party, error)) measure {
	return func(ctx context.Context) (out sample, err error) {
		store, err := s.newShelf()
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		p, err := start(store)
		if err != nil {
			return nil, err
		}
		o, err := s.serveBatch(ctx, p, b)
		if err = errors.Join(err, p.stop()); err != nil {
			return nil, err
		}
		return sample{
			"rate": float64(b.Tasks) / o.Last.Sub(o.First).Seconds(),
			"p50":  milliseconds(o.P50), "p99": milliseconds(o.P99),
		}, s.awaitHeld(ctx, 0)
	}
}

func (s *site) serveBatch(ctx context.Context, p *party, b Batch) (out Outcome, err error) {
	if err := s.awaitHeld(ctx, p.polls); err != nil {
		return out, err
	}
	if _, err := s.prepare(ctx, b); err != nil {
		return out, err
	}
	return s.awaitReplies(ctx)
}

// worker returns a start for serves.
func (s *site) worker(concurrency int, handler agentjob.HandlerFunc) func(*shelf) (*party, error) {
	return func(store *shelf) (*party, error) { return s.startWorker(store, concurrency, handler) }
}

// noop is the handler that answers at once.
func noop(context.Context, *agentjob.Task) (*agentjob.Reply, error) {
	return agentjob.Text(replyText), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
