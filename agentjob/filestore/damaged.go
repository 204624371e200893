package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

// A DamagedError says that files of a store can't be used, and where they are now. It matches
// [agentjob.ErrStoreDamaged]. The store returns it, at each start, until an operator has
// decided; its text says what to do.
type DamagedError struct {
	Path     string   // of the store
	SetAside []string // where the damaged files are now; empty if there is none to set aside
	Err      error    // what is wrong
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%v: %s: %v; nothing is claimed until you put good files in their places and remove the folder %s, "+
		"or go on without them (replies in them are not delivered, and tasks in them may run again) by calling filestore.GoOn or renaming that folder",
		agentjob.ErrStoreDamaged, e.Path, e.Err, filepath.Join(e.Path, damagedFolder))
}

// Unwrap returns [agentjob.ErrStoreDamaged] and Err.
func (e *DamagedError) Unwrap() []error { return []error{agentjob.ErrStoreDamaged, e.Err} }

// Damaged files are moved to the same path under this folder. While it has any of a provider, that
// provider isn't served.
const damagedFolder = "damaged"

// setAside moves damaged files away, durably. The paths are relative to the store's folder.
func (f *folder) setAside(damaged map[string]error) error {
	var moved []string
	var causes []error
	for _, path := range sorted(damaged) {
		to := f.path(damagedFolder, path)
		err := privatefile.EnsureDir(filepath.Dir(to))
		if err == nil {
			err = os.Rename(f.path(path), to)
		}
		if err == nil {
			err = errors.Join(privatefile.SyncDir(filepath.Dir(to)), privatefile.SyncDir(filepath.Dir(f.path(path))))
		}
		if err != nil {
			causes = append(causes, fmt.Errorf("%s: %w (it can't be set aside: %w)", path, damaged[path], err))
			continue
		}
		moved = append(moved, to)
		causes = append(causes, fmt.Errorf("%s: %w", path, damaged[path]))
	}
	return &DamagedError{Path: f.dir, SetAside: moved, Err: errors.Join(causes...)}
}

func sorted(damaged map[string]error) (paths []string) {
	for path := range damaged {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// undecided returns a DamagedError if there are files at or under a path that were set aside.
func (f *folder) undecided(path string) error {
	found, err := filesUnder(f.path(damagedFolder, path))
	if err != nil {
		return fmt.Errorf("looking for files that were set aside: %w", err)
	}
	if len(found) == 0 {
		return nil
	}
	return &DamagedError{Path: f.dir, SetAside: found, Err: fmt.Errorf("set aside before: %s", strings.Join(found, ", "))}
}

func filesUnder(path string) (found []string, err error) {
	err = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}

// GoOn is an operator's decision to go on without the damaged files that were set aside: the rest of the store
// is served again. Nothing is deleted: it returns the files' new paths, in a folder
// beside the records that is never looked at again. The store must not be open, or the error
// matches [agentjob.ErrLeaseHeld].
func GoOn(dir string) (setAside []string, err error) {
	f, err := enter(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.leave()) }()
	left := f.path(damagedFolder + "-" + time.Now().UTC().Format("20060102T150405.000000000Z"))
	if err := os.Rename(f.path(damagedFolder), left); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("going on without damaged files: %w", err)
	}
	if setAside, err = filesUnder(left); err != nil {
		return nil, fmt.Errorf("going on without damaged files: %w", err)
	}
	if _, err := os.Lstat(f.path(formatFile)); errors.Is(err, fs.ErrNotExist) {
		return setAside, f.writeFormat()
	}
	return setAside, privatefile.SyncDir(f.dir)
}
