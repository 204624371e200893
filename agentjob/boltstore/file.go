package boltstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

// The layout of a file: meta holds the format, fingerprints the provider of each
// key, and providers a bucket for each provider with its records by task id.
var (
	metaBucket         = []byte("meta")
	fingerprintsBucket = []byte("fingerprints")
	providersBucket    = []byte("providers")
	formatKey          = []byte("format")
)

const (
	format   = 1
	lockWait = time.Second
	minSize  = 4 * 4096 // bbolt starts with four pages
)

// A file is a bbolt file that never panics.
type file struct {
	db     *bolt.DB
	os     *os.File
	broken atomic.Pointer[error] // set once bbolt has panicked
}

func openFile(path string) (*file, error) {
	if err := privatefile.EnsureDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	err := privatefile.Check(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = create(path)
	}
	if err != nil {
		return nil, err
	}
	f := &file{}
	if err := f.open(path); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// create makes an empty store, complete from the moment that it has its
// name. So a file of no bytes is a damaged one and never a new one.
func create(path string) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("making the store %s: %w", path, err)
	}
	defer os.RemoveAll(dir) // best effort: what is left there holds no records
	db, err := bolt.Open(filepath.Join(dir, "store"), 0o600, nil)
	if err != nil {
		return fmt.Errorf("making the store %s: %w", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		_, err1 := tx.CreateBucket(fingerprintsBucket)
		_, err2 := tx.CreateBucket(providersBucket)
		return errors.Join(err1, err2, meta.Put(formatKey, []byte(fmt.Sprint(format))))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("making the store %s: %w", path, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "store"))
	if err != nil {
		return fmt.Errorf("making the store %s: %w", path, err)
	}
	if err := privatefile.Create(path, data); err != nil && !errors.Is(err, fs.ErrExist) {
		return err // if it exists by now, another process has made it
	}
	return nil
}

func (f *file) open(path string) error {
	err := f.guard(func() (err error) {
		f.db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout:      lockWait,
			FreelistType: bolt.FreelistMapType, // the array gets slow when many pages are free
			OpenFile:     f.openOS,
		})
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w: %s is open in another worker; stop it, or use another file", agentjob.ErrLeaseHeld, path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		err = fmt.Errorf("%w: it is no bbolt file, or its start is damaged: %w", agentjob.ErrStoreDamaged, err)
	case err == nil:
		err = f.view(func(tx *bolt.Tx) error { return f.checkLayout(tx) })
	}
	if errors.Is(err, agentjob.ErrStoreDamaged) {
		return fmt.Errorf("opening %s: %w; the file was left as it is", path, err)
	}
	if err != nil {
		return fmt.Errorf("opening the store %s: %w", path, err)
	}
	return nil
}

// openOS opens the file for bbolt, without making it: create has done that. An
// empty file, which bbolt would fill, or a very short one is damaged.
func (f *file) openOS(path string, _ int, _ fs.FileMode) (_ *os.File, err error) {
	if f.os, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	info, err := f.os.Stat()
	if err == nil && info.Size() < minSize {
		err = fmt.Errorf("%w: the file was cut to %d bytes", agentjob.ErrStoreDamaged, info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.os.Close())
	}
	return f.os, nil
}

func (f *file) checkLayout(tx *bolt.Tx) error {
	info, err := f.os.Stat()
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("%w: the file was cut from at least %d bytes to %d", agentjob.ErrStoreDamaged, tx.Size(), info.Size())
	}
	meta := tx.Bucket(metaBucket)
	if meta == nil || tx.Bucket(fingerprintsBucket) == nil || tx.Bucket(providersBucket) == nil {
		return fmt.Errorf("%w: it is a bbolt file of something else", agentjob.ErrStoreDamaged)
	}
	if is := string(meta.Get(formatKey)); is != fmt.Sprint(format) {
		return fmt.Errorf("%w: it has format %q and this version reads only %d: a newer version wrote it, update this program", agentjob.ErrStoreDamaged, is, format)
	}
	return nil
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

func (f *file) close() error {
	switch {
	case f.broken.Load() != nil && f.os != nil:
		return errors.Join(unlock(f.os), f.os.Close())
	case f.db != nil:
		return f.guard(f.db.Close)
	}
	return nil
}
