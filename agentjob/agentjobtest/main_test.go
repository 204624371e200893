package agentjobtest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	register  = "POST /api/register/auto"
	me        = "GET /api/agents/me"
	heartbeat = "POST /api/agents/heartbeat"
	poll      = "GET /api/agents/tasks?wait=1"
	longPoll  = "GET /api/agents/tasks?wait=25"
)

func progressOf(id string) string { return "GET /api/agents/tasks/" + id + "/progress" }
func reportOf(id string) string   { return "POST /api/agents/tasks/" + id + "/progress" }
func respondTo(id string) string  { return "POST /api/agents/tasks/" + id + "/response" }

// A reply is what a plain HTTP client got.
type reply struct {
	status int
	header http.Header
	body   string
}

// json returns the body as an object.
func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.body), &out), "body %q", r.body)
	return out
}

// try sends one request, "METHOD /path", without following redirects.
func try(ctx context.Context, srv *agentjobtest.Server, key, target, body string, header ...string) (reply, error) {
	method, path, _ := strings.Cut(target, " ")
	req, err := http.NewRequestWithContext(ctx, method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := *srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(text)}, err
}

func call(t testing.TB, srv *agentjobtest.Server, key, target, body string, header ...string) reply {
	t.Helper()
	r, err := try(t.Context(), srv, key, target, body, header...)
	require.NoError(t, err)
	return r
}

// online returns a server and an agent that has sent a heartbeat.
func online(t testing.TB, settings agentjobtest.Settings) (*agentjobtest.Server, *agentjobtest.Agent) {
	t.Helper()
	srv := agentjobtest.NewServer(settings)
	t.Cleanup(srv.Close)
	agent := srv.AddAgent("Helper")
	require.Equal(t, http.StatusOK, call(t, srv, agent.Key, heartbeat, "").status)
	return srv, agent
}

func send(t testing.TB, chat *agentjobtest.Chat, text string) *agentjobtest.Message {
	t.Helper()
	m, err := chat.Send(text)
	require.NoError(t, err)
	return m
}

// claim polls and returns the task object, nil for none, of the native shape.
func claim(t testing.TB, srv *agentjobtest.Server, agent *agentjobtest.Agent, header ...string) map[string]any {
	t.Helper()
	r := call(t, srv, agent.Key, poll, "", header...)
	require.Equal(t, http.StatusOK, r.status)
	task, _ := r.json(t)["task"].(map[string]any)
	return task
}
