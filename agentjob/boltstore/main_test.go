package boltstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

const childEnv = "BOLTSTORE_TEST_CHILD" // the store's path, for the test binary as a child process

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child puts records of random-looking size for ever, from several
// goroutines, and prints the id of each that is acknowledged.
func child(path string) error {
	boltstore.CompactAtOnce()
	store, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	lease, err := store.Acquire(context.Background(), "agent-1")
	if err != nil {
		return err
	}
	fmt.Println("open")
	errs := make(chan error)
	for writer := range 4 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d/%d/%d", os.Getpid(), writer, i)
				if err := lease.Put(context.Background(), childRecord(id)); err != nil {
					errs <- err
					return
				}
				fmt.Println(id) // one write call: a line is whole or absent
				// Neither a late write in between nor the compaction that it brings must harm the durable ones.
				gone := "gone " + id
				if err := errors.Join(lease.Put(context.Background(), childRecord(gone)), lease.Delete(context.Background(), gone)); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return <-errs
}

func childRecord(id string) agentjob.Record {
	return agentjob.Record{
		Provider: "agent-1", TaskID: id, State: agentjob.StateSaved,
		Content: agentjob.Content{Response: make([]byte, len(id)*97%3000)},
	}
}

// startChild returns the child's process and output.
func startChild(t *testing.T, path string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // in case that the test ended early
	return cmd, out
}
