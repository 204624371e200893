package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// bbolt never wipes what was deleted or replaced: it stays in free pages. So the file is now and then replaced
// by a copy of what counts, which is made beside it and takes its name when it is complete and on disk.

const (
	copyEntries = 256 // copied in one transaction
	copyBytes   = 1 << 20
)

// compactDelay is how long something deleted may stay before a copy is begun; a variable for tests.
var compactDelay = 5 * time.Minute

// atStep is called wherever a crash would leave something new, or an error would; for tests.
var atStep = func(step string) error { return nil }

// compactRetry is how long to wait after a copy that failed, on a full disk for example.
const compactRetry = time.Minute

// replacesOpenFiles: Windows doesn't rename over an open file, so there a store is compacted only by Open and Close.
const replacesOpenFiles = runtime.GOOS != "windows"

// begin makes the copy's file, still empty. It isn't synced before it is complete.
func (h *home) begin() (*file, error) {
	copied, err := newFile(h.partial(), bolt.Options{NoSync: true, NoGrowSync: true})
	if err == nil {
		if err = atStep("begun"); err != nil {
			err = errors.Join(err, copied.close())
		}
	}
	if err != nil {
		return nil, errors.Join(compacting(err), h.removePartial())
	}
	return copied, nil
}

// copyTo copies the entries, in many short transactions: a long one would hold up the writer. What
// is written meanwhile may be copied or not, and has to be written to the copy afterwards. It ends early when stop is closed.
func (f *file) copyTo(to *file, stop <-chan struct{}) error {
	from := []place{{bucket: fingerprintsBucket}}
	err := f.view(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(providersBucket)).ForEachBucket(func(name []byte) error {
			from = append(from, place{bucket: providersBucket, provider: string(name)})
			return nil
		})
	})
	for _, p := range from {
		for more := err == nil; more; {
			select {
			case <-stop:
				return errStopped
			default:
			}
			var part []op
			if part, err = f.after(p); err == nil && len(part) > 0 {
				p.key = part[len(part)-1].place.key
				_, err = to.edit(func(e *edit) error { return applyAll(e, part) })
				err = errors.Join(err, atStep("part"))
			}
			more = err == nil && len(part) > 0
		}
	}
	return err
}

var errStopped = errors.New("stopped")

// after returns the entries of a bucket that follow a place, some of them.
func (f *file) after(p place) (part []op, err error) {
	size := 0
	err = f.view(func(tx *bolt.Tx) error {
		bucket := p.in(tx)
		if bucket == nil {
			return nil
		}
		cursor := bucket.Cursor()
		for key, value := cursor.Seek([]byte(p.key)); key != nil && len(part) < copyEntries && size < copyBytes; key, value = cursor.Next() {
			if string(key) != p.key {
				part = append(part, op{action: put, place: place{p.bucket, p.provider, string(key)}, value: bytes.Clone(value)})
				size += len(key) + len(value)
			}
		}
		return nil
	})
	return part, err
}

func applyAll(e *edit, ops []op) error {
	for _, o := range ops {
		if err := o.apply(e); err != nil {
			return err
		}
	}
	return nil
}

// settle makes a complete copy durable, as is everything that is written to it from now on.
func (f *file) settle() error {
	return f.guard(func() error {
		f.db.NoSync, f.db.NoGrowSync = false, false
		return errors.Join(f.os.Sync(), atStep("settled"))
	})
}

// compactClosed compacts the file while it isn't in use. On an error the old file is still there.
func (h *home) compactClosed() error {
	old, err := openFile(h.path)
	if err != nil {
		return err
	}
	copied, err := h.begin()
	if err != nil {
		return errors.Join(err, old.close())
	}
	if err = old.copyTo(copied, nil); err == nil {
		err = copied.settle()
	}
	if err = errors.Join(err, copied.close(), old.close()); err == nil {
		err = h.publish()
	}
	if err != nil {
		return errors.Join(compacting(err), h.removePartial())
	}
	return nil
}

func compacting(err error) error {
	return fmt.Errorf("compacting: what was deleted is still in the file, and all else is well: %w", err)
}

// A compaction makes a copy while the store goes on. Only the writer's goroutine uses it; copying itself has its own.
type compaction struct {
	home   *home
	copied *file
	since  []op       // what was written since it began, oldest first
	done   chan error // has the result of copying
	stop   chan struct{}
	failed bool // a write failed, so that it isn't known what is in the file
}

func (h *home) compact() (*compaction, error) {
	copied, err := h.begin()
	if err != nil {
		return nil, err
	}
	c := &compaction{home: h, copied: copied, done: make(chan error, 1), stop: make(chan struct{})}
	from := h.file
	go func() {
		err := from.copyTo(copied, c.stop)
		if err == nil {
			err = copied.os.Sync() // most of the syncing, so that there is little left for finish
		}
		c.done <- err
	}()
	return c, nil
}

// wrote notes what a transaction has written.
func (c *compaction) wrote(batch []*op, err error) {
	if err != nil {
		c.failed = c.failed || !errors.Is(err, bolterrors.ErrMaxSizeReached) // which comes before anything is written
		return
	}
	for _, o := range batch {
		if o.action != flush && o.err == nil {
			c.since = append(c.since, *o)
		}
	}
}

// finish puts the copy, whose copying ended with err, in the place of the file. It tells
// whether something in it is stale already.
func (c *compaction) finish(err error) (stale bool, _ error) {
	if err == nil && c.failed {
		err = errors.New("a write failed meanwhile")
	}
	if err == nil {
		stale, err = c.copied.edit(func(e *edit) error { return applyAll(e, c.since) })
	}
	if err == nil {
		err = errors.Join(c.copied.settle(), c.copied.limit(c.home.maxSize))
	}
	if err == nil {
		err = c.home.replace(c.copied)
	}
	if err != nil {
		return true, errors.Join(compacting(err), c.copied.close(), c.home.removePartial())
	}
	return stale, nil
}

// abort ends copying and forgets the copy.
func (c *compaction) abort() error {
	close(c.stop)
	<-c.done
	return errors.Join(c.copied.close(), c.home.removePartial())
}

// replace gives the partial file, which is open, the store's name and goes on with it.
func (h *home) replace(next *file) error {
	err := h.publish()
	switch {
	case errors.Is(err, errUnsynced):
		// A power cut might bring the old file back, so nothing may be promised with the new one.
		err = fmt.Errorf("%w; close the store and open it again", err)
		next.broken.Store(&err)
	case err != nil:
		return err
	}
	h.mu.Lock()
	old := h.file
	h.file = next
	h.mu.Unlock()
	return old.close()
}
