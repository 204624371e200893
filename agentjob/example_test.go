package agentjob_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// serve is the program that README.md shows; a test compares the two.
func serve(ctx context.Context, config agentjob.ClientConfig, records string) error {
	client, err := agentjob.NewClient(config)
	if err != nil {
		return err
	}
	store, err := boltstore.Open(records, boltstore.Options{})
	if err != nil {
		return err
	}
	answer := func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
		return agentjob.Text("You said: " + task.LastUserText()), nil
	}
	worker, err := agentjob.NewWorker(agentjob.Config{Client: client, Store: store, Handler: agentjob.HandlerFunc(answer)})
	if err == nil {
		err = worker.Run(ctx)
	}
	return errors.Join(err, store.Close())
}

// The whole of a provider, against the platform in this process.
func Example() {
	folder, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	platform := agentjobtest.NewServer(agentjobtest.Settings{})
	defer platform.Close()
	agent := platform.AddAgent("Echo")
	// Queue: the provider comes online while the message waits.
	message, err := platform.User("Ada").Chat(agent).SendMessage(agentjobtest.MessageOptions{Text: "Hello", Queue: true})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, drain := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		config := agentjob.ClientConfig{BaseURL: platform.URL, APIKey: secret.New(agent.Key), HTTPClient: platform.Client()}
		served <- serve(ctx, config, filepath.Join(folder, "state", "agentjob.db"))
	}()
	fmt.Println(message.WaitReply(ctx))
	drain()
	fmt.Println(<-served)
	// Output:
	// You said: Hello <nil>
	// <nil>
}
