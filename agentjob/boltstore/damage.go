package boltstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

// A DamagedError says that a store's file can't be used, and where it is now. It matches
// [agentjob.ErrStoreDamaged], and also [agentjob.ErrStoreNewer] if that is all that is wrong. Open returns it, at each start, until an operator has decided; its text says what to do.
type DamagedError struct {
	Path     string // of the store
	SetAside string // where the damaged file is now; "" if it was left in place
	Err      error  // what is wrong with it
}

func (e *DamagedError) Error() string {
	if e.SetAside == "" {
		return fmt.Sprintf("the store %s can't be used: %v; it was left as it is, and nothing is claimed", e.Path, e.Err)
	}
	return fmt.Sprintf("%v: %s: %v; it was set aside as %s, and nothing is claimed: restore the store from a backup, or go on "+
		"without its records (replies in it are not delivered, and tasks in it may run again) by calling boltstore.StartAfresh or moving the file to another folder",
		agentjob.ErrStoreDamaged, e.Path, e.Err, e.SetAside)
}

// Unwrap returns [agentjob.ErrStoreDamaged] and Err.
func (e *DamagedError) Unwrap() []error { return []error{agentjob.ErrStoreDamaged, e.Err} }

// StartAfresh is an operator's decision to go on without the records of a store that was
// set aside: it makes an empty store at path. A store that is still at path, in which a record can't be read for
// example, is set aside first; if it is in use the error matches [agentjob.ErrLeaseHeld]. Nothing is deleted:
// it returns the paths of all files that were set aside there, oldest first. The key file stays, too.
func StartAfresh(path string) (setAside []string, err error) {
	h, err := enter(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.leave()) }()
	switch info, err := os.Stat(h.path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("making a new store: %w", err)
	case info.IsDir():
		return nil, errFolder(h.path)
	default:
		if _, err := h.setAside(); err != nil {
			return nil, err
		}
	}
	if setAside, err = h.damaged(); err != nil {
		return nil, err
	}
	return setAside, h.create()
}

const damagedMark = ".damaged-"

// damaged returns the files that were set aside, oldest first.
func (h *home) damaged() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(h.path)) // sorted, and the names hold the time
	if err != nil {
		return nil, fmt.Errorf("looking for damaged stores: %w", err)
	}
	var found []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(h.path)+damagedMark) {
			found = append(found, filepath.Join(filepath.Dir(h.path), entry.Name()))
		}
	}
	return found, nil
}

// setAside gives the store's file another name, which no file has, durably.
func (h *home) setAside() (string, error) {
	name := h.path + damagedMark + time.Now().UTC().Format("20060102T150405.000000000Z")
	_, err := os.Lstat(name)
	for n := 2; err == nil; n++ {
		name = fmt.Sprintf("%s-%d", name, n)
		_, err = os.Lstat(name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("setting the store %s aside: %w", h.path, err)
	}
	if err := errors.Join(os.Rename(h.path, name), privatefile.SyncDir(filepath.Dir(h.path))); err != nil {
		return "", fmt.Errorf("setting the store %s aside: %w", h.path, err)
	}
	return name, nil
}

// look inspects the store's file, which it makes if there is none yet. A damaged one is set aside.
func (h *home) look() (*contents, error) {
	found, err := inspectFile(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h.absent()
	case errors.Is(err, errNotOurs):
		return nil, &DamagedError{Path: h.path, Err: err}
	case errors.Is(err, errDamage):
		name, failed := h.setAside()
		return nil, errors.Join(&DamagedError{Path: h.path, SetAside: name, Err: err}, failed)
	case err != nil:
		return nil, fmt.Errorf("reading the store %s: %w", h.path, err)
	}
	return found, nil
}

// absent is the case that there is no file: because there never was, or because it was set aside
// and nobody has decided since.
func (h *home) absent() (*contents, error) {
	before, err := h.damaged()
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return &contents{}, h.create()
	}
	last := before[len(before)-1]
	if _, err = inspectFile(last); err == nil {
		err = errors.New("it was set aside by StartAfresh or is good again; to use it give it back its name")
	}
	return nil, &DamagedError{Path: h.path, SetAside: last, Err: err}
}

func inspectFile(path string) (*contents, error) {
	if err := privatefile.Check(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // only read: closing can't lose anything
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, errFolder(path)
	}
	return inspect(file)
}

// errFolder: a folder is somebody's, and no damaged store.
func errFolder(path string) error {
	return fmt.Errorf("%s is a folder: a store is a file, so choose a name in it", path)
}
