package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

// What is in the store's folder, beside damagedFolder.
const (
	lockFile          = "lock"
	formatFile        = "format"
	keyFile           = "key"
	fingerprintFolder = "fingerprints"
	providerFolder    = "providers"
	bindingExtension  = ".provider"
	recordExtension   = ".record"
)

const (
	format    = 1
	lockWait  = time.Second
	lockRetry = 20 * time.Millisecond
	maxFormat = 1 << 10   // bytes of the format file
	maxRecord = 256 << 20 // bytes of a record's file
)

// A folder is a store's folder, whose lock is held.
type folder struct {
	dir  string
	lock *flock.Flock
}

// enter takes the lock of a folder, which it makes if need be.
func enter(dir string) (*folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", dir, err)
	}
	if err := privatefile.EnsureDir(dir); err != nil {
		return nil, err
	}
	f := &folder{dir: dir}
	f.lock = flock.New(f.path(lockFile), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	switch _, err := f.lock.TryLockContext(ctx, lockRetry); {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w: %s is open in another worker; stop it, or use another folder", agentjob.ErrLeaseHeld, dir)
	case err != nil:
		return nil, fmt.Errorf("locking the store %s: %w", dir, err)
	}
	return f, nil
}

func (f *folder) leave() error { return f.lock.Close() }

func (f *folder) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

// prepare checks that the folder is a store of this format, or makes it one.
func (f *folder) prepare() error {
	if err := f.undecided(formatFile); err != nil {
		return err
	}
	text, err := privatefile.ReadFile(f.path(formatFile), maxFormat)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = f.begin()
	case err == nil:
		err = f.checkFormat(string(text))
	}
	if err != nil {
		return err
	}
	for _, part := range []string{fingerprintFolder, providerFolder} {
		if err := privatefile.EnsureDir(f.path(part)); err != nil {
			return err
		}
	}
	return errors.Join(privatefile.RemoveLeftovers(f.dir), privatefile.RemoveLeftovers(f.path(fingerprintFolder)))
}

// begin makes a store of a folder without a format. The format is made before anything else, so
// that it can only be missing beside records if it was lost.
func (f *folder) begin() error {
	for _, part := range []string{providerFolder, fingerprintFolder} {
		if _, err := os.Lstat(f.path(part)); err == nil {
			return &DamagedError{Path: f.dir, Err: fmt.Errorf("the file %s is missing, though there is a folder %s", formatFile, part)}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("opening the store %s: %w", f.dir, err)
		}
	}
	return f.writeFormat()
}

func (f *folder) writeFormat() error {
	return privatefile.WriteFile(f.path(formatFile), fmt.Appendf(nil, "%d\n", format))
}

func (f *folder) checkFormat(text string) error {
	version, err := strconv.Atoi(strings.TrimSuffix(text, "\n"))
	switch {
	case err != nil || version < 1 || text != fmt.Sprintf("%d\n", version):
		return f.setAside(map[string]error{formatFile: errors.New("it does not hold the number of a format")})
	case version > format:
		return fmt.Errorf("%w: %s: %w (it has format %d, this one reads %d); it was left as it is",
			agentjob.ErrStoreDamaged, f.dir, agentjob.ErrStoreNewer, version, format)
	}
	return nil
}

// intact reports whether the folder is still the one that was opened: a folder that was moved
// away takes its records with it, and in one that took its place another worker may be at work.
func (f *folder) intact() error {
	held, err := f.lock.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(f.path(lockFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the store's folder or its lock was removed: put %s back as it was: %w", f.dir, err)
	case err != nil:
		return err
	case !os.SameFile(held, now):
		return fmt.Errorf("%w: %s was replaced by another", agentjob.ErrLeaseLost, f.path(lockFile))
	}
	return nil
}

// keys returns the folder's own key file. A new key is made only if the old one isn't missed.
func (f *folder) keys() (secret.KeySource, error) {
	_, err := os.Lstat(f.path(keyFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return secret.FileKeys(f.path(keyFile)), err
	}
	files, err := filesUnder(f.path(providerFolder))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if filepath.Ext(path) != recordExtension {
			continue
		}
		data, err := privatefile.ReadFile(path, maxRecord)
		if err != nil {
			return nil, err
		}
		if bytes.ContainsRune(data, '\n') { // its content follows
			return nil, fmt.Errorf("%w: the key file %s is gone, and it sealed records, the first of them %s: restore it from a backup, "+
				"or move the folder away and start with a new one", secret.ErrKeyUnknown, f.path(keyFile), path)
		}
	}
	return secret.FileKeys(f.path(keyFile)), nil
}
