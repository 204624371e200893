package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// A tally counts what was looked at and what was wrong.
type tally struct {
	states     int
	lost       int // acknowledged writes that are gone
	rerun      int // tasks that ran and would run, or be answered, again
	early      int // replies that left, and handlers that started, before their record was on disk
	unopenable int // stores that could not be opened, read and written
	texts      []string
}

func (t *tally) add(other tally) {
	t.states += other.states
	t.lost += other.lost
	t.rerun += other.rerun
	t.early += other.early
	t.unopenable += other.unopenable
	t.texts = append(t.texts, other.texts...)
}

func (t tally) bad() int { return t.lost + t.rerun + t.early + t.unopenable }

func (t *tally) count(column *int, format string, args ...any) {
	*column++
	t.texts = append(t.texts, fmt.Sprintf(format, args...))
}

// Found is what a store has in a folder.
type found struct {
	err       error // why it can't be opened, read or written
	records   map[string]agentjob.Record
	providers map[string]string // of the keys
}

// A looker opens stores in rebuilt folders. The same content is looked at once.
type looker struct {
	*recording
	keys  map[string]bool // that are asked for
	cache map[[32]byte]found
}

func newLooker(r *recording) *looker {
	all := newExpected()
	for _, m := range r.marks {
		all.note(m)
	}
	return &looker{r, all.bound, map[[32]byte]found{}}
}

// rebuilt gives an image as a folder. Where there is a file system in memory it is there: these folders' own syncs prove nothing.
func rebuilt(image systrace.Image, use func(folder string) error) (err error) {
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = ""
	}
	folder, err := os.MkdirTemp(parent, "powercut-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := image.Write(folder); err != nil {
		return err
	}
	return use(folder)
}

// look opens the store in an image, reads it, writes to it, and opens and reads it again.
func (l *looker) look(ctx context.Context, image systrace.Image) (found, error) {
	sum := image.Sum()
	if f, ok := l.cache[sum]; ok {
		return f, nil
	}
	var f found
	err := rebuilt(image, func(folder string) error {
		f = l.read(ctx, folder, &agentjob.Record{Provider: l.agent.ID, TaskID: "probe", State: agentjob.StateClaimed, ClaimedAt: time.Now()})
		if f.err != nil {
			return nil
		}
		again := l.read(ctx, folder, nil)
		if again.err == nil && len(again.records) != len(f.records)+1 {
			again.err = fmt.Errorf("%d records were there, one was put, then there were %d", len(f.records), len(again.records))
		}
		f.err = again.err
		return nil
	})
	if err == nil {
		l.cache[sum] = f
	}
	return f, err
}

// read opens a store and reads it, then puts a record if there is one.
func (l *looker) read(ctx context.Context, folder string, put *agentjob.Record) found {
	f := found{records: map[string]agentjob.Record{}, providers: map[string]string{}}
	store, err := l.kind.open(folder)
	if err != nil {
		return found{err: err}
	}
	lease, err := store.Acquire(ctx, l.agent.ID)
	if err == nil {
		for rec, problem := range lease.Records(ctx) {
			if err = problem; err != nil {
				break
			}
			f.records[rec.TaskID] = rec
		}
		for key := range l.keys {
			provider, problem := store.Provider(ctx, key)
			err, f.providers[key] = errors.Join(err, problem), provider
		}
		if err == nil && put != nil {
			err = lease.Put(ctx, *put)
		}
		err = errors.Join(err, lease.Close())
	}
	f.err = errors.Join(err, store.Close())
	return f
}

// judge compares what a store has with what had come before the power cut.
func (l *looker) judge(f found, e *expected) (t tally) {
	t.states = 1
	if f.err != nil {
		t.count(&t.unopenable, "the store can't be used: %v", f.err)
		return t
	}
	has := func(id string, states ...agentjob.State) bool {
		rec := f.records[id]
		same := rec.State != agentjob.StateSaved || bytes.Equal(rec.Content.Response, l.replies[id])
		return slices.Contains(states, rec.State) && same
	}
	for _, id := range sorted(e.claimed) {
		if !has(id, agentjob.StateClaimed, agentjob.StateSaved, agentjob.StateEnded) {
			t.count(&t.lost, "task %s: acknowledged as claimed, and now it is %q", id, f.records[id].State)
		}
	}
	for _, id := range sorted(e.saved) {
		if !has(id, agentjob.StateSaved, agentjob.StateEnded) {
			t.count(&t.lost, "task %s: acknowledged as saved, and now it is %q", id, f.records[id].State)
		}
	}
	for _, key := range sorted(e.bound) {
		if f.providers[key] != l.agent.ID {
			t.count(&t.lost, "the provider's key: acknowledged as bound, and now it belongs to %q", f.providers[key])
		}
	}
	for _, id := range sorted(e.ran) {
		if _, known := f.records[id]; !known {
			t.count(&t.rerun, "task %s: its handler had started, and now nothing is known of it", id)
		}
	}
	for _, id := range sorted(e.sent) {
		if !has(id, agentjob.StateSaved, agentjob.StateEnded) {
			t.count(&t.early, "task %s: its reply was on its way, and now it is %q", id, f.records[id].State)
		}
	}
	return t
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
