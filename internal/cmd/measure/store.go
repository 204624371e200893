package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

const (
	rawWrites    = 300
	singleWrites = 300
	sharedWrites = 100 // of each of the writers
	writers      = 64
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
			"raw":    b.rawAppend,
			"one":    func(ctx context.Context) (sample, error) { return b.storeWrites(ctx, 1, singleWrites) },
			"shared": func(ctx context.Context) (sample, error) { return b.storeWrites(ctx, writers, sharedWrites) },
		}, func() error { return nil }, nil
	},
}

func rate(n int, since time.Time) sample {
	return sample{"rate": float64(n) / time.Since(since).Seconds()}
}

func (b *bench) rawAppend(ctx context.Context) (out sample, err error) {
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
	for range rawWrites {
		if _, err := file.Write(payload); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
	}
	return rate(rawWrites, began), ctx.Err()
}

// storeWrites has writers write in one file, each as a provider of its own. A task is a durable
// record with a reply, and its late removal.
func (b *bench) storeWrites(ctx context.Context, writers, each int) (out sample, err error) {
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
	began := time.Now()
	err = together(writers, func(i int) error {
		for n := range each {
			rec := agentjob.Record{Provider: key(i), TaskID: fmt.Sprint(n), State: agentjob.StateSaved, Content: agentjob.Content{Response: payload}}
			if err := errors.Join(leases[i].Put(ctx, rec), leases[i].Delete(ctx, rec.TaskID)); err != nil {
				return err
			}
		}
		return nil
	})
	return rate(writers*each, began), err
}

// key is the id and the key of one of many providers.
func key(i int) string { return fmt.Sprintf("provider-%d", i) }
