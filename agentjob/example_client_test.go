package agentjob_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// platform answers a few routes, as the real one at agentjob.DefaultBaseURL does.
func platform(answers map[string]string) *httptest.Server {
	mux := http.NewServeMux()
	for route, body := range answers {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
	}
	return httptest.NewServer(mux)
}

// Claim a task and answer it. A Worker does this with everything around it.
func ExampleClient() {
	server := platform(map[string]string{
		"GET /api/agents/tasks":               `{"task":{"id":"t-1","messages":[{"role":"user","content":"What is 6 times 7?"}]}}`,
		"POST /api/agents/tasks/t-1/response": `{"ok":true}`,
	})
	defer server.Close()

	client, err := agentjob.NewClient(agentjob.ClientConfig{APIKey: secret.New("ak_EXAMPLE"), BaseURL: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	ctx := context.Background()
	task, err := client.PollTask(ctx, agentjob.Poll{Wait: 25 * time.Second})
	if err != nil || task == nil {
		log.Fatal("no task: ", err)
	}
	fmt.Println("asked:", task.LastUserText())
	receipt, err := client.Respond(ctx, task.ID, agentjob.Response{Text: "42"})
	switch {
	case errors.Is(err, agentjob.ErrConflict):
		fmt.Println("too late, or cancelled")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("delivered:", receipt.StatusCode)
	}
	// Output:
	// asked: What is 6 times 7?
	// delivered: 200
}

// Register once and keep the file: it holds the key that the platform shows once.
func ExampleClient_Register() {
	server := platform(map[string]string{
		"POST /api/register/auto": `{"ok":true,"data":{"agentId":"a-1","walletAddress":"0x01","walletType":"server_wallet","apiKey":"ak_EXAMPLE"}}`,
	})
	defer server.Close()
	dir, err := os.MkdirTemp("", "agentjob")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "registration.json")

	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	registration, err := client.Register(context.Background(), agentjob.RegisterOptions{File: file, AgentName: "Example"})
	if err != nil {
		advice, _ := agentjob.NextRegistrationTry(file, time.Now())
		log.Fatalf("%v (next try: %v, %s)", err, advice.At, advice.Reason)
	}
	fmt.Println(registration.Outcome, registration.AgentID, registration.APIKey)

	// The next start finds it in the file.
	registration, err = agentjob.LoadRegistration(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(registration.Outcome, registration.APIKey.Reveal() != "")
	// Output:
	// registered a-1 [redacted]
	// registered true
}

// Watch a task for the customer's cancel.
func ExampleClient_Progress() {
	server := platform(map[string]string{"GET /api/agents/tasks/t-1/progress": `{"status":"cancelled"}`})
	defer server.Close()
	client, err := agentjob.NewClient(agentjob.ClientConfig{APIKey: secret.New("ak_EXAMPLE"), BaseURL: server.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer client.CloseIdleConnections()
	progress, err := client.Progress(context.Background(), "t-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(progress.Status, progress.Status.Over(), progress.Remaining == nil)
	// Output: cancelled true true
}
