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

func (f *file) update(do func(*bolt.Tx) error) error {
	return f.guard(func() error { return f.db.Update(do) })
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
