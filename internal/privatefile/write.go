package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile durably replaces or makes a file of mode 0600. On an error the
// old file is still there. A symbolic link is replaced, not followed.
func WriteFile(path string, data []byte) error {
	return write(path, data, os.Rename)
}

// Create is like [WriteFile] for a file that must not exist: the error then
// matches [fs.ErrExist] and the file that is there is whole and durable, even if
// another process is making it at this moment. The file system must
// have hard links.
func Create(path string, data []byte) error {
	return write(path, data, os.Link)
}

// RemoveLeftovers removes the temporary files that a process left in a folder when it was killed in
// WriteFile or Create. None may be writing there.
func RemoveLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		if gone := os.Remove(filepath.Join(dir, entry.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return fmt.Errorf("removing what a crash left in %s: %w", dir, err)
	}
	return nil
}

const tempPrefix = ".new-"

// write fills a temporary file beside path, which publish gives its name.
func write(path string, data []byte, publish func(temp, path string) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the private file %s: %w", path, err)
		}
	}()
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, tempPrefix+"*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = publish(temp.Name(), path)
	}
	// Renaming takes the temporary name away, linking and failing leave it.
	if gone := os.Remove(temp.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = errors.Join(err, SyncDir(dir))
	}
	return err
}
