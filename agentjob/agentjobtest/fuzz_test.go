package agentjobtest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// Whatever a provider sends, the platform answers with a status of its own and no 5xx.
func FuzzRequest(f *testing.F) {
	srv := agentjobtest.NewServer(agentjobtest.Settings{})
	f.Cleanup(srv.Close)
	agent := srv.AddAgent("Helper")
	m, err := srv.User("alice").Chat(agent).SendMessage(agentjobtest.MessageOptions{Text: "Hello", ID: "t-1", Queue: true})
	require.NoError(f, err)
	for _, seed := range [][2]string{
		{poll, ""},
		{me, "x"},
		{heartbeat, `{"attachmentTypes":["image/png"],"serviceRevision":"a b"}`},
		{register, `{"agentName":"","idempotencyKey":1}`},
		{progressOf(m.ID), ""},
		{reportOf(m.ID), `{"seq":9223372036854775807,"percent":101}`},
		{respondTo(m.ID), `{"text":"\ud800","attachmentIds":[""]}`},
		{"POST /api/agents/tasks/%2e%2e/response", "null"},
		{"DELETE /", "{"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, target, body string) {
		method, path, _ := strings.Cut(target, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil || req.URL.Host != strings.TrimPrefix(srv.URL, "http://") {
			t.Skip("no request that a client could send")
		}
		req.Header.Set("Authorization", "Bearer "+agent.Key)
		if req.Method == http.MethodGet && req.URL.Path == "/api/agents/tasks" {
			req.URL.RawQuery = "wait=0" // a poll that is held takes real time
		}
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, req)
		require.GreaterOrEqual(t, rec.Code, 200)
		require.Less(t, rec.Code, 500, "%s %q", target, body)
	})
}
