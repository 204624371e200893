package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

// An Idler is a process in which many wait for tasks that don't come. It waits until the
// parent hangs up and then ends without ceremony.
type Idler struct {
	t     *http.Transport
	store *boltstore.Store
	kept  []any      // what must not be collected
	wrong chan error // why one of them ended
}

// What waits in an Idler.
const (
	nobody  = "nobody"
	polls   = "bare polls"
	workers = "workers"
	leases  = "leases" // of the store, as the workers hold
)

// A Crowd is what to start.
type Crowd struct {
	Kind string
	Size int
	URL  string
	Dir  string // of the store
}

// Start starts it.
func (d *Idler) Start(c Crowd, _ *None) error {
	d.wrong = make(chan error, c.Size)
	d.t = &http.Transport{Protocols: new(http.Protocols)}
	d.t.Protocols.SetUnencryptedHTTP2(true)
	if c.Kind == workers || c.Kind == leases {
		var err error
		if d.store, err = boltstore.Open(filepath.Join(c.Dir, "records"), boltstore.Options{}); err != nil {
			return err
		}
	}
	for i := range c.Size {
		if err := d.add(c, key(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d *Idler) add(c Crowd, key string) error {
	ctx := context.Background()
	switch c.Kind {
	case polls:
		plain := bare{&http.Client{Transport: d.t}, c.URL, key}
		go func() {
			for {
				task, err := plain.poll(ctx, 25)
				if err == nil && task != nil {
					err = errors.New("a task came")
				}
				if err != nil {
					d.wrong <- err
					return
				}
			}
		}()
	case workers:
		worker, err := newWorker(c.URL, key, d.t, d.store, agentjob.Config{Handler: agentjob.HandlerFunc(noop)})
		if err != nil {
			return err
		}
		go func() { d.wrong <- worker.Run(ctx) }()
	case leases:
		lease, err := d.store.Acquire(ctx, key)
		if err != nil {
			return err
		}
		d.kept = append(d.kept, lease)
	}
	return nil
}

// Idleness is what waiting costs.
type Idleness struct {
	Private    *int64 // bytes after garbage collection; nil: this system does not tell
	Goroutines int
	Processor  *time.Duration // over the time asked for; nil likewise
}

// Measure looks at the process for as long as told, and then at what it holds.
func (d *Idler) Measure(window time.Duration, out *Idleness) error {
	before, err := processorTime()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	supported := err == nil
	select {
	case err := <-d.wrong:
		return fmt.Errorf("one of them ended: %w", err)
	case <-time.After(window):
	}
	if supported {
		after, err := processorTime()
		if err != nil {
			return err
		}
		out.Processor = new(after - before)
	}
	out.Goroutines = runtime.NumGoroutine()
	for range 3 { // stacks shrink by half in each
		runtime.GC()
	}
	debug.FreeOSMemory()
	bytes, err := privateMemory()
	switch {
	case err == nil:
		out.Private = &bytes
	case !errors.Is(err, errors.ErrUnsupported):
		return err
	}
	runtime.KeepAlive(d.kept)
	return nil
}
