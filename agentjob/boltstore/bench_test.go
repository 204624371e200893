package boltstore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

// One task is a durable Put of 1 KiB and a late Delete. The metric "x-raw" is the
// rate beside that of a raw file in the same folder and run, which gets one append and fsync a task.
func BenchmarkTask(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			path := newPath(b)
			store, err := boltstore.Open(path, boltstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			lease, err := store.Acquire(b.Context(), "agent-1")
			if err != nil {
				b.Fatal(err)
			}
			payload := bytes.Repeat([]byte("x"), 1024)

			raw := elapsed(b, 1, min(b.N, 500), rawAppend(b, filepath.Dir(path), payload)) / time.Duration(min(b.N, 500))
			b.ResetTimer()
			took := elapsed(b, writers, b.N, func(i int) error {
				id := fmt.Sprint(i)
				if err := lease.Put(b.Context(), agentjob.Record{
					Provider: "agent-1", TaskID: id, State: agentjob.StateSaved, Content: agentjob.Content{Response: payload},
				}); err != nil {
					return err
				}
				return lease.Delete(b.Context(), id)
			})
			b.StopTimer()
			b.ReportMetric(float64(raw)*float64(b.N)/float64(took), "x-raw")
		})
	}
}

func rawAppend(b *testing.B, dir string, payload []byte) func(int) error {
	file, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	return func(int) error {
		if _, err := file.Write(payload); err != nil {
			return err
		}
		return file.Sync()
	}
}

// elapsed does n tasks on some goroutines.
func elapsed(b *testing.B, goroutines, n int, task func(i int) error) time.Duration {
	start := time.Now()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n; i += goroutines {
				if err := task(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

// Opening reads and verifies the whole file. The file here has 100 MB, in records of 1 KiB and of 100 KiB.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("record=%d", size), func(b *testing.B) {
			path := newPath(b)
			store, err := boltstore.Open(path, boltstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			lease, err := store.Acquire(b.Context(), "agent-1")
			if err != nil {
				b.Fatal(err)
			}
			payload := bytes.Repeat([]byte("x"), size*3/4) // sealed it is in base64
			elapsed(b, 64, 100<<20/size, func(i int) error {
				return lease.Put(b.Context(), agentjob.Record{
					Provider: "agent-1", TaskID: fmt.Sprint(i), State: agentjob.StateSaved, Content: agentjob.Content{Response: payload},
				})
			})
			for b.Loop() {
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
				if store, err = boltstore.Open(path, boltstore.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
