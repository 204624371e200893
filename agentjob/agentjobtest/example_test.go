package agentjobtest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A provider of three requests: it comes online, claims a message and answers it.
func ExampleNewServer() {
	srv := agentjobtest.NewServer(agentjobtest.Settings{})
	defer srv.Close()
	agent := srv.AddAgent("Helper")
	request := func(method, path, body string) {
		req, err := http.NewRequest(method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+agent.Key)
		res, err := srv.Client().Do(req)
		if err != nil {
			panic(err)
		}
		_ = res.Body.Close()
		fmt.Println(method, res.Status)
	}

	request("POST", "/api/agents/heartbeat", "")
	message, err := srv.User("alice").Chat(agent).Send("Hello")
	if err != nil {
		panic(err)
	}
	request("GET", "/api/agents/tasks?wait=25", "")
	request("POST", "/api/agents/tasks/"+message.ID+"/response", `{"text":"Good morning!"}`)
	reply, err := message.WaitReply(context.Background())
	fmt.Println(reply, err)
	// Output:
	// POST 200 OK
	// GET 200 OK
	// POST 200 OK
	// Good morning! <nil>
}
