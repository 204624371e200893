package filestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
)

func ExampleOpen() {
	folder, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	store, err := filestore.Open(filepath.Join(folder, "agentjob"), filestore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	ctx := context.Background()
	lease, err := store.Acquire(ctx, "agent-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lease.Put(ctx, agentjob.Record{Provider: "agent-1", TaskID: "task-1", State: agentjob.StateClaimed})
	fmt.Println("put:", err)
	for rec, err := range lease.Records(ctx) {
		fmt.Println(rec.TaskID, rec.State, err)
	}
	// Output:
	// put: <nil>
	// task-1 claimed <nil>
}
