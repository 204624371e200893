package agentjob

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

func TestNewClientNamesTheWrongField(t *testing.T) {
	for _, c := range []struct {
		field string
		cfg   ClientConfig
	}{
		{"BaseURL", ClientConfig{BaseURL: "agent-job.ai"}},
		{"BaseURL", ClientConfig{BaseURL: "ftp://h"}},
		{"BaseURL", ClientConfig{BaseURL: "https://"}},
		{"BaseURL", ClientConfig{BaseURL: "https://:443"}},
		{"BaseURL", ClientConfig{BaseURL: "https://me:S3CRET@h"}},
		{"BaseURL", ClientConfig{BaseURL: "https://me:S3CRET@h/%zz"}},
		{"BaseURL", ClientConfig{BaseURL: "https://h?sig=S3CRET"}},
		{"BaseURL", ClientConfig{BaseURL: "https://h/#S3CRET"}},
		{"APIKey", ClientConfig{APIKey: secret.New("ak_S3CRET\n")}},
		{"APIKey", ClientConfig{APIKey: secret.New("KEY=S3CRET x")}},
		{"UserAgent", ClientConfig{UserAgent: "a\r\nb"}},
	} {
		_, err := NewClient(c.cfg)
		var v *ValidationError
		require.ErrorAs(t, err, &v)
		assert.Equal(t, c.field, v.Field)
		assert.NotContains(t, err.Error(), "S3CRET")
	}
	c, err := NewClient(ClientConfig{})
	require.NoError(t, err)
	assert.Equal(t, "https://agent-job.ai", c.BaseURL())
	c, err = NewClient(ClientConfig{BaseURL: "HTTPS://Host.Example:8443/Some/Path/"})
	require.NoError(t, err)
	assert.Equal(t, "https://host.example:8443/Some/Path", c.BaseURL())
}

func TestWithoutAKeyNothingIsSent(t *testing.T) {
	m := httpmock.NewMockTransport()
	c, err := NewClient(ClientConfig{HTTPClient: &http.Client{Transport: m}})
	require.NoError(t, err)
	for op, call := range calls {
		assert.ErrorIs(t, call(t.Context(), c), ErrUnauthorized, op)
	}
	assert.Zero(t, m.GetTotalCallCount())
}

func TestFingerprintTellsKeysAndPlatformsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, base := range []string{"https://h", "https://h/a"} {
		for _, key := range []string{"ak_EXAMPLE1", "ak_EXAMPLE2"} {
			c, err := NewClient(ClientConfig{BaseURL: base, APIKey: secret.New(key)})
			require.NoError(t, err)
			assert.Regexp(t, "^[0-9a-f]{32}$", c.KeyFingerprint())
			assert.Equal(t, c.KeyFingerprint(), c.once().KeyFingerprint())
			seen[c.KeyFingerprint()] = true
		}
	}
	assert.Len(t, seen, 4)
}

// sent is what a request looked like.
type sent struct {
	method, path, query, auth, contentType, types string
	body                                          string
}

func recording(t *testing.T) (*Client, *[]sent) {
	t.Helper()
	var requests []sent
	c, _ := mocked(t, func(r *http.Request) (*http.Response, error) {
		s := sent{
			method: r.Method, path: r.URL.EscapedPath(), query: r.URL.RawQuery, auth: r.Header.Get("Authorization"),
			contentType: r.Header.Get("Content-Type"), types: r.Header.Get("x-agentjob-attachment-types"),
		}
		if r.Body != nil {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			s.body = string(body)
		}
		requests = append(requests, s)
		return httpmock.NewStringResponse(200, "{}"), nil
	})
	return c, &requests
}

func TestWhatIsSent(t *testing.T) {
	ctx := t.Context()
	const auth, jsonBody = "Bearer ak_EXAMPLE_KEY", "application/json"
	for _, c := range []struct {
		call func(*Client) error
		want sent
	}{
		{
			func(c *Client) error { _, err := c.Me(ctx); return err },
			sent{method: "GET", path: "/base/api/agents/me"},
		},
		{
			func(c *Client) error { _, err := c.Heartbeat(ctx, Heartbeat{}); return err },
			sent{method: "POST", path: "/base/api/agents/heartbeat", contentType: jsonBody, body: `{}`},
		},
		{func(c *Client) error {
			_, err := c.Heartbeat(ctx, Heartbeat{AttachmentTypes: []string{"image/png", "text/csv"}, ServiceRevision: "v1.2_3-a", RuntimeInfo: &RuntimeInfo{Framework: "own"}})
			return err
		}, sent{
			method: "POST", path: "/base/api/agents/heartbeat", contentType: jsonBody,
			body: `{"attachmentTypes":["image/png","text/csv"],"serviceRevision":"v1.2_3-a","runtimeInfo":{"framework":"own","model":"Unknown"}}`,
		}},
		{
			func(c *Client) error { _, err := c.PollTask(ctx, Poll{}); return err },
			sent{method: "GET", path: "/base/api/agents/tasks", query: "wait=25"},
		},
		{func(c *Client) error {
			_, err := c.PollTask(ctx, Poll{Wait: 1999 * time.Millisecond, AttachmentTypes: []string{"image/png", "text/csv"}})
			return err
		}, sent{method: "GET", path: "/base/api/agents/tasks", query: "wait=1", types: "image/png,text/csv"}},
		{
			func(c *Client) error { _, err := c.Progress(ctx, "a/../b?\x00 ä"); return err },
			sent{method: "GET", path: "/base/api/agents/tasks/a%2F..%2Fb%3F%00%20%C3%A4/progress"},
		},
		{func(c *Client) error {
			return c.ReportProgress(ctx, "t-1", ProgressReport{Seq: 7, Message: "Half", Percent: new(0)})
		}, sent{method: "POST", path: "/base/api/agents/tasks/t-1/progress", contentType: jsonBody, body: `{"seq":7,"message":"Half","percent":0}`}},
		{
			func(c *Client) error { return c.ReportProgress(ctx, "t-1", ProgressReport{Seq: 1}) },
			sent{method: "POST", path: "/base/api/agents/tasks/t-1/progress", contentType: jsonBody, body: `{"seq":1,"message":""}`},
		},
		{
			func(c *Client) error { _, err := c.Respond(ctx, "t-1", Response{Text: "Hi"}); return err },
			sent{method: "POST", path: "/base/api/agents/tasks/t-1/response", contentType: jsonBody, body: `{"text":"Hi"}`},
		},
		{func(c *Client) error {
			_, err := c.Respond(ctx, "t-1", Response{AttachmentIDs: []string{"f-1"}})
			return err
		}, sent{method: "POST", path: "/base/api/agents/tasks/t-1/response", contentType: jsonBody, body: `{"text":"","attachmentIds":["f-1"]}`}},
		{
			func(c *Client) error { _, err := c.Overview(ctx); return err },
			sent{method: "GET", path: "/base/api/agents/me/overview"},
		},
		{func(c *Client) error {
			_, err := c.FinalizeFile(ctx, "t/1", someFile)
			return err
		}, sent{method: "PATCH", path: "/base/api/agents/tasks/t%2F1/files", contentType: jsonBody, body: `{"id":"` + someFile + `"}`}},
		{
			func(c *Client) error { _, err := c.Withdrawal(ctx, "w/1"); return err },
			sent{method: "GET", path: "/base/api/agents/me/withdrawals/w%2F1"},
		},
	} {
		client, requests := recording(t)
		require.NoError(t, c.call(client), c.want.path)
		c.want.auth = auth
		assert.Equal(t, []sent{c.want}, *requests)
	}
}

func TestRespondBytesSendsExactlyWhatWasSaved(t *testing.T) {
	client, requests := recording(t)
	body, err := Response{Text: "Hi <there> \u2028"}.encode()
	require.NoError(t, err)
	_, err = client.respondBytes(t.Context(), "t-1", body)
	require.NoError(t, err)
	assert.Equal(t, string(body), (*requests)[0].body)
	_, err = client.respondBytes(t.Context(), "t-1", []byte(`{"text":"PRIVATE`))
	assert.Error(t, err)
	assert.NotContains(t, err.Error(), "PRIVATE")
}

func TestTheClientLogsNothingOfTheConversation(t *testing.T) {
	var out bytes.Buffer
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(httpmock.NewStringResponder(200, `{"task":{"id":"t-1","messages":[{"content":"PRIVATE"}]}}`))
	c, err := NewClient(ClientConfig{
		APIKey: secret.New("ak_S3CRET"), HTTPClient: &http.Client{Transport: m},
		Logger: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(t, err)
	_, err = c.PollTask(t.Context(), Poll{})
	require.NoError(t, err)
	_, err = c.Respond(t.Context(), "t-1", Response{Text: "PRIVATE"})
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		for _, key := range []string{"time", "level", "msg"} {
			delete(entry, key)
		}
		assert.ElementsMatch(t, []string{"op", "status", "took", "attempt"}, keysOf(entry))
	}
	assert.NotContains(t, out.String(), "PRIVATE")
	assert.NotContains(t, out.String(), "S3CRET")
}

func keysOf(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
