package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	bolt "go.etcd.io/bbolt"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

const (
	lockWait = time.Second
	lockPoll = 20 * time.Millisecond
)

// A home is the place of a store. It holds the lock that is the one-worker rule: a file of its own, which
// stays, since the store's file may be set aside or replaced by a compacted one.
type home struct {
	path    string
	lock    *flock.Flock
	maxSize int64

	mu   sync.RWMutex // held for writing while file is replaced
	file *file
}

// enter takes the lock and removes what a crash left half made.
func enter(path string) (*home, error) {
	path, err := settled(path)
	if err != nil {
		return nil, err
	}
	h := &home{path: path, lock: flock.New(path+".lock", flock.SetPermissions(0o600))}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	switch ok, err := h.lock.TryLockContext(ctx, lockPoll); {
	case ok:
	case errors.Is(err, context.DeadlineExceeded):
		err = errHeld(path)
		fallthrough
	default:
		return nil, errors.Join(fmt.Errorf("locking the store %s: %w", path, err), h.lock.Close())
	}
	if err := h.removePartial(); err != nil {
		return nil, errors.Join(err, h.leave())
	}
	return h, nil
}

func errHeld(path string) error {
	return fmt.Errorf("%w: %s is open in another worker; stop it, or use another file", agentjob.ErrLeaseHeld, path)
}

// settled returns the path, in a private folder, where the file itself is: one that is
// reached by a symbolic link is locked, replaced and set aside there.
func settled(path string) (string, error) {
	if err := privatefile.EnsureDir(filepath.Dir(path)); err != nil {
		return "", err
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("finding the store %s: %w", path, err)
	}
	return target, privatefile.EnsureDir(filepath.Dir(target))
}

// leave closes what is open and gives the lock back.
func (h *home) leave() error {
	var err error
	if h.file != nil {
		err = h.file.close()
	}
	return errors.Join(err, h.lock.Close())
}

// intact reports whether the store is still where it was opened. What is written to a file that was removed is
// lost with the process, and in a folder that took the place of this one another worker may be at work.
func (h *home) intact() error {
	if err := h.held(); err != nil {
		return err
	}
	ours, err := h.file.os.Stat()
	if err != nil {
		return err
	}
	return isAt(h.path, ours)
}

// held reports whether the lock that is held is still the store's.
func (h *home) held() error {
	ours, err := h.lock.Stat()
	if err != nil {
		return err
	}
	return isAt(h.lock.Path(), ours)
}

func isAt(path string, ours fs.FileInfo) error {
	found, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the store was moved or removed: put %s back as it was: %w", path, err)
	case err != nil:
		return err
	case !os.SameFile(ours, found):
		return fmt.Errorf("%w: %s was replaced by another", agentjob.ErrLeaseLost, path)
	}
	return nil
}

// partial is where a file is until it is complete.
func (h *home) partial() string { return h.path + ".partial" }

func (h *home) removePartial() error {
	if err := os.Remove(h.partial()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what a crash left: %w", err)
	}
	return nil
}

// publish gives the partial file, which is complete and on disk, the store's name.
func (h *home) publish() error {
	if err := h.held(); err != nil {
		return err
	}
	if err := os.Rename(h.partial(), h.path); err != nil {
		return err
	}
	if err := errors.Join(atStep("renamed"), privatefile.SyncDir(filepath.Dir(h.path))); err != nil {
		return fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return nil
}

// errUnsynced: a file has its name, but a power cut might take it away.
var errUnsynced = errors.New("the store's folder can't be synced")

// create makes an empty store, complete from the moment that it has its
// name. So a file of no bytes is a damaged one and never a new one.
func (h *home) create() error {
	f, err := newFile(h.partial(), bolt.Options{})
	if err == nil {
		err = f.close()
	}
	if err == nil {
		err = h.publish()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("making the store %s: %w", h.path, err), h.removePartial())
	}
	return nil
}

// open opens the store's file, which has been looked at.
func (h *home) open() (err error) {
	if h.file, err = openFile(h.path); err != nil {
		return err
	}
	h.file.doubtful = h.file.last() // a process that died may have failed to sync it
	return h.file.limit(h.maxSize)
}

func (h *home) view(do func(*bolt.Tx) error) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.file.view(do)
}

// edit is called by one goroutine at a time, the one that replaces the file.
func (h *home) edit(do func(*edit) error) (stale bool, err error) {
	if err := h.intact(); err != nil {
		return false, err
	}
	return h.file.edit(do)
}

// retire closes the store's file, compacts it if something in it is stale, and gives the lock back.
func (h *home) retire(stale bool) error {
	broken := h.file.broken.Load() != nil
	err := h.file.close()
	h.file = nil
	if err == nil && stale && !broken {
		if err = h.held(); err == nil {
			err = h.compactClosed()
		}
	}
	return errors.Join(err, h.leave())
}
