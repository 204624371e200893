package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// EnsureDir makes the folder and the missing ones above it, each for the owner alone
// (0700), durably. A folder that is there already must be private too, or
// the error matches [ErrNotPrivate].
func EnsureDir(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("finding the folder %s: %w", path, err)
	}
	if err := makeDir(path); err != nil {
		return fmt.Errorf("making the private folder %s: %w; choose a place where this user may write", path, err)
	}
	return Check(path)
}

func makeDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is not a folder", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return err
	}
	if err := makeDir(parent); err != nil {
		return err
	}
	// Another process may be faster; then it must still be a folder.
	if err := os.Mkdir(path, 0o700); errors.Is(err, fs.ErrExist) {
		if info, err := os.Stat(path); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", path)
		}
	} else if err != nil {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a folder durable: files that were made, renamed or
// removed there. On Windows, which can't do it, it does nothing.
func SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
