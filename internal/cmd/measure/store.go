package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

const (
	spell   = time.Second // of one side of a round
	writers = 64
)

// payload is what the store's figures write: a reply of 1 KiB.
var payload = bytes.Repeat([]byte("x"), 1024)

// store compares the store alone with a file that gets one append and fsync a task.
var store = figure{
	name: "store",
	claims: []claim{
		{
			name: "store/1-writer", unit: "tasks/s", compared: "append and fsync of 1 KiB", goal: goal{limit: 0.5},
			value: of("one", "rate"), ratio: beside(of("one", "rate"), of("raw", "rate")),
		},
		{
			name: "store/64-writers", unit: "tasks/s", compared: "append and fsync of 1 KiB, one writer", goal: goal{limit: 8},
			value: of("shared", "rate"), ratio: beside(of("shared", "rate"), of("raw", "rate")),
		},
	},
	sides: []string{"raw", "one", "shared"},
	set: func(_ context.Context, b *bench) (map[string]measure, func() error, error) {
		return map[string]measure{
			"raw":    func(ctx context.Context) (sample, error) { return b.rawAppend(ctx, spell) },
			"one":    func(ctx context.Context) (sample, error) { return b.storeWrites(ctx, 1, spell) },
			"shared": func(ctx context.Context) (sample, error) { return b.storeWrites(ctx, writers, spell) },
		}, func() error { return nil }, nil
	},
}

// repeat does something for a while, counting from 0, and returns how often.
func repeat(ctx context.Context, spell time.Duration, do func(n int) error) (times int64, err error) {
	for began := time.Now(); time.Since(began) < spell && ctx.Err() == nil; times++ {
		if err := do(int(times)); err != nil {
			return times, err
		}
	}
	return times, ctx.Err()
}

// rawAppend appends to a file.
func (b *bench) rawAppend(ctx context.Context, spell time.Duration) (out sample, err error) {
	dir, err := b.folder()
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.RemoveAll(dir)) }()
	began := time.Now()
	times, err := repeat(ctx, spell, func(int) error {
		if _, err := file.Write(payload); err != nil {
			return err
		}
		return file.Sync()
	})
	return sample{"rate": float64(times) / time.Since(began).Seconds()}, err
}

// storeWrites has writers write in one file, each as a provider of its own. A task is a durable
// record with a reply, and its late removal.
func (b *bench) storeWrites(ctx context.Context, writers int, spell time.Duration) (out sample, err error) {
	store, err := b.newShelf()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	leases := make([]agentjob.Lease, writers)
	for i := range leases {
		if leases[i], err = store.Acquire(ctx, key(i)); err != nil {
			return nil, err
		}
	}
	var all atomic.Int64
	began := time.Now()
	err = together(writers, func(i int) error {
		times, err := repeat(ctx, spell, func(n int) error {
			rec := agentjob.Record{Provider: key(i), TaskID: fmt.Sprint(n), State: agentjob.StateSaved, Content: agentjob.Content{Response: payload}}
			return errors.Join(leases[i].Put(ctx, rec), leases[i].Delete(ctx, rec.TaskID))
		})
		all.Add(times)
		return err
	})
	return sample{"rate": float64(all.Load()) / time.Since(began).Seconds()}, err
}

// key is the id and the key of one of many providers.
func key(i int) string { return fmt.Sprintf("provider-%d", i) }
