package boltstore

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

const (
	maxBatch   = 256 // operations in one transaction, and in the queue
	lazyDelay  = 50 * time.Millisecond
	retryDelay = time.Second
)

// An action is what an operation does at its place.
type action int

const (
	flush  action = iota // wait for all lazy writes of the place's provider
	put                  // insert or replace the value
	remove               // delete it
)

// An op is one operation on its way to the disk.
type op struct {
	action action
	place  place
	value  []byte
	leaves share
	lazy   bool       // nobody waits for it
	done   chan error // has room for the result; nil if lazy
	err    error
}

func (o *op) apply(e *edit) error {
	switch o.action {
	case put:
		return e.put(o.place, o.value)
	case remove:
		return e.remove(o.place)
	}
	return nil
}

// A writer commits operations in the order of its queue, as many as wait in one transaction.
type writer struct {
	home     *home
	queue    chan *op
	failing  atomic.Bool   // lazy writes failed, which are tried again: don't be lazy now
	finished chan struct{} // closed at the end, when left is set
	left     error

	compactor compactor
}

func newWriter(h *home, stale bool) *writer {
	w := &writer{home: h, queue: make(chan *op, maxBatch), finished: make(chan struct{}), compactor: compactor{home: h}}
	if stale {
		w.compactor.plan(compactRetry)
	}
	go w.run()
	return w
}

// run ends when the queue is closed and empty.
func (w *writer) run() {
	defer close(w.finished)
	var batch []*op          // oldest first; only lazy ones wait in it
	var due <-chan time.Time // when they have waited long enough
	for open := true; open; {
		var o *op
		select {
		case o, open = <-w.queue:
			if open {
				runtime.Gosched() // those just answered queue their next ones: fuller batches
				batch = w.drain(append(batch, o))
			}
			if open && len(batch) < maxBatch && !slices.ContainsFunc(batch, isUrgent) {
				if due == nil {
					due = time.After(lazyDelay)
				}
				continue
			}
		case <-due:
		case <-w.compactor.due:
			w.compactor.begin()
			continue
		case err := <-w.compactor.copied():
			w.compactor.finish(err)
			continue
		}
		due = nil
		if batch = w.commit(batch); len(batch) > 0 {
			due = time.After(retryDelay)
		}
		w.failing.Store(len(batch) > 0)
	}
	w.left = errors.Join(failures(batch, ""), w.compactor.end())
}

func isUrgent(o *op) bool { return !o.lazy }

// drain adds what waits in the queue.
func (w *writer) drain(batch []*op) []*op {
	for len(batch) < maxBatch {
		select {
		case o, open := <-w.queue:
			if !open {
				return batch // run sees it too
			}
			batch = append(batch, o)
		default:
			return batch
		}
	}
	return batch
}

// commit writes a batch, answers those who wait, and returns the lazy
// operations that failed and still count, oldest first.
func (w *writer) commit(batch []*op) (left []*op) {
	w.write(batch)
	obsolete := map[place]bool{}
	for _, o := range slices.Backward(batch) {
		retry := o.lazy && o.err != nil && !obsolete[o.place]
		if retry {
			left = append(left, o)
		}
		if retry || o.err == nil {
			obsolete[o.place] = true
		}
	}
	slices.Reverse(left)
	for _, o := range batch {
		if o.lazy {
			continue
		}
		if o.action == flush {
			o.err = failures(left, o.place.provider)
		}
		o.done <- o.err
	}
	return left
}

// write sets the err of each operation. If the transaction fails, its halves are
// tried one after the other, so that one which is too large for the disk
// doesn't fail the others and a delete can still make room.
func (w *writer) write(batch []*op) {
	if !slices.ContainsFunc(batch, func(o *op) bool { return o.action != flush }) {
		return
	}
	stale, err := w.home.edit(func(e *edit) error {
		used := used(e.tx)
		for _, o := range batch {
			if o.err = o.leaves.refuse(used, int64(len(o.value)), w.home.maxSize); o.err == nil {
				used += int64(len(o.value))
				o.err = o.apply(e)
			}
		}
		return nil
	})
	w.compactor.notice(batch, stale, err)
	switch half := len(batch) / 2; {
	case err == nil:
	case half == 0:
		batch[0].err = full(err)
	default:
		w.write(batch[:half])
		w.write(batch[half:])
	}
}

// failures tells what of a provider, or of all if it is "", isn't on disk.
func failures(left []*op, provider string) error {
	var errs []error
	for _, o := range left {
		if provider == "" || provider == o.place.provider {
			errs = append(errs, fmt.Errorf("not on disk yet, task %q: %w", o.place.key, o.err))
		}
	}
	return errors.Join(errs...)
}
