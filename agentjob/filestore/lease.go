package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

type lease struct {
	store    *Store
	provider string
	folder   string // relative to the store's
	lost     chan struct{}
	loseOnce sync.Once

	turn   turn
	closed bool // under turn, as is
	late   bool // something was deleted since the folder was synced
}

// begin checks that the provider may be served, and prepares its folder.
func (l *lease) begin() error {
	if err := l.store.folder.undecided(l.folder); err != nil {
		return err
	}
	if err := privatefile.EnsureDir(l.store.folder.path(l.folder)); err != nil {
		return err
	}
	return privatefile.RemoveLeftovers(l.store.folder.path(l.folder))
}

// do runs an operation while the lease is held.
func (l *lease) do(ctx context.Context, operation func() error) error {
	return l.turn.do(ctx, func() error {
		if l.closed {
			return fmt.Errorf("provider %q: %w: it was closed", l.provider, agentjob.ErrLeaseLost)
		}
		select {
		case <-l.lost:
			return fmt.Errorf("provider %q: %w", l.provider, agentjob.ErrLeaseLost)
		default:
		}
		err := l.store.folder.intact()
		if errors.Is(err, agentjob.ErrLeaseLost) {
			l.lose()
		}
		if err != nil {
			return err
		}
		return operation()
	})
}

func (l *lease) lose() { l.loseOnce.Do(func() { close(l.lost) }) }

func (l *lease) place(taskID string) string {
	return filepath.Join(l.folder, name(taskID)+recordExtension)
}

func (l *lease) Put(ctx context.Context, rec agentjob.Record) error {
	if rec.Provider != l.provider {
		return fmt.Errorf("putting task %q: it is of provider %q and the lease of %q", rec.TaskID, rec.Provider, l.provider)
	}
	data, err := agentjob.EncodeRecord(rec, l.store.sealer)
	if err != nil {
		return err
	}
	if len(data) > maxRecord {
		return fmt.Errorf("putting task %q: the record is too large: %d bytes", rec.TaskID, len(data))
	}
	if err := l.do(ctx, func() error { return l.replace(l.store.folder.path(l.place(rec.TaskID)), data) }); err != nil {
		return fmt.Errorf("putting task %q: %w", rec.TaskID, err)
	}
	return nil
}

// replace writes a file durably, with its name and so with all earlier deletes. On an error the
// old content is there, or again: the new one has its name already when the folder can't be synced.
func (l *lease) replace(path string, data []byte) error {
	old, err := privatefile.ReadFile(path, maxRecord)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	failed := privatefile.WriteFile(path, data)
	if failed == nil {
		l.late = false
		return nil
	}
	if err := restore(path, old); err != nil {
		return fmt.Errorf("%w; the old record can't be put back: %w", failed, err)
	}
	return failed
}

// restore gives a file its old content back, unless it has it; nil is that there was no file.
func restore(path string, old []byte) error {
	isBack := func() bool {
		now, err := privatefile.ReadFile(path, maxRecord)
		return err == nil && old != nil && bytes.Equal(now, old) || errors.Is(err, fs.ErrNotExist) && old == nil
	}
	if isBack() {
		return nil
	}
	var err error
	if old == nil {
		err = os.Remove(path)
	} else {
		err = privatefile.WriteFile(path, old)
	}
	if isBack() {
		return nil // a power cut might still find either
	}
	return err
}

func (l *lease) Delete(ctx context.Context, taskID string) error {
	err := l.do(ctx, func() error {
		l.late = true
		if err := os.Remove(l.store.folder.path(l.place(taskID))); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("deleting task %q: %w", taskID, err)
	}
	return nil
}

func (l *lease) Records(ctx context.Context) iter.Seq2[agentjob.Record, error] {
	return func(yield func(agentjob.Record, error) bool) {
		encoded, err := l.snapshot(ctx)
		if err != nil {
			yield(agentjob.Record{}, fmt.Errorf("reading the records of provider %q: %w", l.provider, err))
			return
		}
		damaged := map[string]error{}
		for place, data := range encoded {
			rec, err := l.decode(place, data)
			switch {
			case errors.Is(err, agentjob.ErrStoreNewer), errors.Is(err, secret.ErrKeyUnknown):
				yield(agentjob.Record{}, fmt.Errorf("reading %s: %w; it was left as it is", l.store.folder.path(place), err))
				return
			case err != nil:
				damaged[place] = err // and look for others, to set them all aside at once
			case len(damaged) == 0 && !yield(rec, nil):
				return
			}
		}
		if len(damaged) > 0 {
			yield(agentjob.Record{}, l.store.folder.setAside(damaged))
		}
	}
}

func (l *lease) decode(place string, data []byte) (agentjob.Record, error) {
	rec, err := agentjob.DecodeRecord(data, l.store.sealer)
	if err == nil && (rec.Provider != l.provider || l.place(rec.TaskID) != place) {
		err = fmt.Errorf("it holds the record of task %q of provider %q, which belongs elsewhere", rec.TaskID, rec.Provider)
	}
	return rec, err
}

// snapshot reads all files by their places.
func (l *lease) snapshot(ctx context.Context) (encoded map[string][]byte, err error) {
	found := map[string][]byte{}
	err = l.do(ctx, func() error {
		if err := l.store.folder.undecided(l.folder); err != nil {
			return err
		}
		entries, err := os.ReadDir(l.store.folder.path(l.folder))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), recordExtension) {
				continue
			}
			place := filepath.Join(l.folder, entry.Name())
			if found[place], err = privatefile.ReadFile(l.store.folder.path(place), maxRecord); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (l *lease) Lost() <-chan struct{} { return l.lost }

// Close also waits for operations that nobody waits for any more.
func (l *lease) Close() error {
	err := l.turn.do(context.Background(), func() error {
		if l.closed {
			return nil
		}
		l.closed = true
		if !l.late {
			return nil
		}
		return privatefile.SyncDir(l.store.folder.path(l.folder))
	})
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.leases[l.provider] == l {
		delete(l.store.leases, l.provider)
	}
	if err != nil {
		return fmt.Errorf("closing provider %q: %w", l.provider, err)
	}
	return nil
}
