package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// A comparison of what both sides do needs requests that are the same.
func TestTheBareLoopSendsTheSameRequests(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{} // what was sent, by who
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := r.Method + " " + r.URL.RequestURI()
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			if name != "Authorization" {
				line += " " + name + ": " + r.Header.Get(name)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		who := r.Header.Get("Authorization")
		seen[who] = append(seen[who], line)
		answer(w, `{"task":null}`)
	}))
	defer server.Close()

	plain := bare{server.Client(), server.URL, "bare"}
	_, err := plain.poll(t.Context(), 25)
	require.NoError(t, err)
	require.NoError(t, plain.look(t.Context(), "t-1", new(bareLook)))
	body, err := replyBody()
	require.NoError(t, err)
	require.NoError(t, plain.respond(t.Context(), "t-1", body))

	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: server.URL, APIKey: secret.New("ours"), HTTPClient: server.Client()})
	require.NoError(t, err)
	_, err = client.PollTask(t.Context(), agentjob.Poll{})
	require.NoError(t, err)
	_, err = client.Progress(t.Context(), "t-1")
	require.NoError(t, err)
	_, err = client.Respond(t.Context(), "t-1", agentjob.Response{Text: replyText})
	require.NoError(t, err)

	assert.Len(t, seen["Bearer ours"], 3)
	assert.Equal(t, seen["Bearer ours"], seen["Bearer bare"])
}
