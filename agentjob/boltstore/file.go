package boltstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/agentjob/agentjob-go/agentjob"
)

// boltWait is for bbolt's own lock. Ours is held, so only another program may have it.
const boltWait = time.Second

// A file is a bbolt file that never panics.
type file struct {
	db     *bolt.DB
	os     *os.File
	broken atomic.Pointer[error] // set once bbolt has panicked

	doubtful int // the transaction whose meta page was written and not synced; 0: none
}

// openFile opens a file that has been verified.
func openFile(path string) (*file, error) {
	return open(path, os.O_RDWR, bolt.Options{})
}

// newFile makes a file that is an empty store.
func newFile(path string, opts bolt.Options) (*file, error) {
	f, err := open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, opts)
	if err != nil {
		return nil, err
	}
	err = f.update(func(tx *bolt.Tx) error {
		for _, name := range []string{metaBucket, fingerprintsBucket, providersBucket} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		e := newEdit(tx)
		return errors.Join(e.put(formatPlace, fmt.Append(nil, format)), e.finish())
	})
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func open(path string, flags int, opts bolt.Options) (*file, error) {
	f := &file{}
	opts.Timeout = boltWait
	opts.FreelistType = bolt.FreelistMapType // the array gets slow when many pages are free
	opts.OpenFile = func(path string, _ int, _ fs.FileMode) (_ *os.File, err error) {
		f.os, err = os.OpenFile(path, flags, 0o600)
		return f.os, err
	}
	err := f.guard(func() (err error) {
		f.db, err = bolt.Open(path, 0o600, &opts)
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = errHeld(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store %s: %w", path, err), f.close())
	}
	return f, nil
}

// guard turns a panic of bbolt, or a fault in the memory that maps a cut file,
// into an error. After one, bbolt's locks may be held for ever, so that
// nothing of it is called again.
func (f *file) guard(do func() error) (err error) {
	if broken := f.broken.Load(); broken != nil {
		return *broken
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: reading or writing its pages failed: %v", agentjob.ErrStoreDamaged, p)
			f.broken.Store(&err)
		}
	}()
	return do()
}

func (f *file) view(do func(*bolt.Tx) error) error {
	return f.guard(func() error { return f.db.View(do) })
}

// update is for one goroutine at a time.
func (f *file) update(do func(*bolt.Tx) error) error {
	return f.guard(func() error {
		if err := f.resync(); err != nil {
			return err
		}
		var id int
		err := f.db.Update(func(tx *bolt.Tx) error {
			id = tx.ID()
			return do(tx)
		})
		if err != nil && f.last() == id {
			f.doubtful = id
			if f.resync() == nil { // it is written after all
				return nil
			}
			return fmt.Errorf("%w; it is there until a power cut, and perhaps after it", err)
		}
		return err
	})
}

// last returns the transaction that bbolt takes for the last one.
func (f *file) last() (id int) {
	_ = f.db.View(func(tx *bolt.Tx) error { id = tx.ID(); return nil }) // fails only when closed: then there is none
	return id
}

// resync makes the meta page of a doubtful transaction durable. bbolt goes on from it, and would
// overwrite pages that the disk's older one still needs. A page whose sync failed is not written by
// the next sync: the system takes it for clean. So it is written again.
func (f *file) resync() error {
	if f.doubtful == 0 {
		return nil
	}
	page := make([]byte, f.db.Info().PageSize)
	at := int64(f.doubtful % 2 * len(page)) // as bbolt places it
	_, err := f.os.ReadAt(page, at)
	if err == nil {
		_, err = f.os.WriteAt(page, at)
	}
	if err == nil {
		err = f.os.Sync()
	}
	if err != nil {
		return fmt.Errorf("syncing what an earlier write left: %w", err)
	}
	f.doubtful = 0
	return nil
}

// edit reports whether it left something stale.
func (f *file) edit(do func(*edit) error) (stale bool, err error) {
	err = f.update(func(tx *bolt.Tx) error {
		e := newEdit(tx)
		err := do(e)
		if err == nil {
			err = e.finish()
		}
		stale = e.stale
		return err
	})
	return stale, err
}

func (f *file) close() error {
	switch {
	case f.broken.Load() != nil && f.os != nil:
		return errors.Join(unlock(f.os), f.os.Close())
	case f.db != nil:
		return f.guard(f.db.Close)
	}
	return nil
}
