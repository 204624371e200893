package agentjob

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// answering returns a client of a real server that gives one answer to everything.
// Calls of the client make one attempt.
func answering(t *testing.T, status int, contentType, body string) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		if status != http.StatusNoContent {
			_, _ = io.WriteString(w, body)
		}
	}))
	t.Cleanup(server.Close)
	return clientOf(t, server.URL, nil).once()
}

func clientOf(t *testing.T, base string, transport http.RoundTripper) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{
		BaseURL: base, APIKey: secret.New("ak_EXAMPLE_KEY"), HTTPClient: &http.Client{Transport: transport},
	})
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

const jsonType = "application/json; charset=utf-8"

// wrapped gives a payload in every envelope.
func wrapped(payload string) []string {
	return []string{
		payload,
		`{"data":` + payload + `}`,
		`{"ok":true,"data":` + payload + `}`,
		"\n " + `{"data":` + payload + `,"ok":true,"new":{"unknown":[1]}}` + "\n",
	}
}

func TestPollReadsEveryShapeOfATask(t *testing.T) {
	const snake = `{"id":"t-1","chat_id":"c-1","is_first_chat":true,"amount_usdc":"0.01","unknown":{"x":1},"messages":[
		{"role":"user","content":"Hello","attachments":[{"id":"a-1","name":"a.png","contentType":"image/png","size":1234,"url":"https://h/a.png"}]}]}`
	const camel = `{"taskId":"t-1","chatId":"c-1","isFirstChat":"true","amountUsdc":0.01,"messages":[
		{"role":"user","text":"Hello","attachments":[{"id":"a-1","name":"a.png","mimeType":"image/png","size":"1234","url":"https://h/a.png"}]}]}`
	const parts = `{"task_id":"t-1","chat_id":"c-1","is_first_chat":1,"amount_usdc":0.010,"messages":[
		{"role":"user","content":[{"type":"text","text":"Hello"},{"type":"image_url","image_url":{}}],"attachments":[{"id":"a-1","name":"a.png","content_type":"image/png","size":1234,"url":"https://h/a.png"},7]}]}`
	for _, task := range []string{snake, camel, parts} {
		for _, body := range append(wrapped(task), wrapped(`{"task":`+task+`}`)...) {
			got, err := answering(t, 200, jsonType, body).PollTask(t.Context(), Poll{})
			require.NoError(t, err, body)
			require.NotNil(t, got, body)
			assert.Equal(t, "t-1", got.ID)
			assert.Equal(t, "c-1", got.ChatID)
			require.NotNil(t, got.FirstChat)
			assert.True(t, *got.FirstChat)
			require.NotNil(t, got.Amount)
			assert.Equal(t, usdc.Amount(10_000), *got.Amount)
			assert.Equal(t, "Hello", got.LastUserText())
			assert.JSONEq(t, task, string(got.Raw))
			require.Len(t, got.Messages, 1)
			require.Len(t, got.Messages[0].Attachments, 1)
			a := got.Messages[0].Attachments[0]
			assert.Equal(t, int64(1234), *a.Size)
			a.Size = nil
			assert.Equal(t, Attachment{ID: "a-1", Name: "a.png", ContentType: "image/png", URL: "https://h/a.png"}, a)

			again, err := decodeStoredTask(got.Raw)
			require.NoError(t, err)
			assert.Equal(t, got, again, "what is stored reads the same")
		}
	}
}

func TestPollReadsEveryShapeOfNoTask(t *testing.T) {
	bodies := append(wrapped(`{"task":null}`), wrapped(`{}`)...)
	bodies = append(bodies, ``, ` `, `null`, `[]`, `{"data":null}`, `{"ok":true,"data":null}`, `{"ok":true}`, `{"task":{}}`, `{"task":false}`,
		`{"data":{"task":null},"id":"the request's"}`, `{"data":null,"id":"the request's"}`, `{"ok":true,"data":[]}`, `{"tasks":[]}`, `{"error":null,"task":null}`)
	for _, body := range bodies {
		task, err := answering(t, 200, jsonType, body).PollTask(t.Context(), Poll{})
		assert.NoError(t, err, body)
		assert.Nil(t, task, body)
	}
	task, err := answering(t, 204, "", "").PollTask(t.Context(), Poll{})
	assert.NoError(t, err)
	assert.Nil(t, task)
}

func TestATaskThatCantBeAnsweredIsNotNoTask(t *testing.T) {
	got, err := answering(t, 200, jsonType, `{"task":{"id":"t"},"error":"about something else"}`).PollTask(t.Context(), Poll{})
	require.NoError(t, err)
	assert.Equal(t, "t", got.ID)
	long := strings.Repeat("x", maxTaskID+1)
	for _, body := range []string{
		`{"task":{"messages":[]}}`, `{"task":{"id":""}}`, `{"task":{"id":null,"messages":[{"content":"PRIVATE"}]}}`, `{"task":{"id":{}}}`,
		`{"task":{"id":"."}}`, `{"task":{"id":".."}}`, `{"task":{"id":"` + long + `"}}`, `{"task":"PRIVATE"}`, `{"task":[{"id":"t"}]}`,
		`{"messages":[{"role":"user","content":"PRIVATE"}]}`, `{"data":{"chat_id":"c"}}`, `{"id":true}`, `{"data":[{"id":"t"}]}`, `[{"id":"t"}]`,
		`{"tasks":[{"id":"t"}]}`, `"PRIVATE"`, `{"task":{"id":"t"`, `PRIVATE`,
	} {
		task, err := answering(t, 200, jsonType, body).PollTask(t.Context(), Poll{})
		assert.ErrorIs(t, err, ErrMalformedResponse, body)
		assert.Nil(t, task, body)
		assert.NotContains(t, err.Error(), "PRIVATE")
	}
}

func TestAWrongFieldDoesNotCostTheTask(t *testing.T) {
	got, err := answering(t, 200, jsonType, `{"task":{"id":12,"chat_id":[],"is_first_chat":"maybe","amount_usdc":"much","deadline":{},"messages":[
		{"role":5,"content":{"rich":1}}, "odd", null, {"role":"user","content":null,"text":"T"}, {"role":"user","attachments":{"id":1}},
		{"role":"user","content":"A","attachments":[{"id":3,"size":-1,"name":null,"url":false}]}]}}`).PollTask(t.Context(), Poll{})
	require.NoError(t, err)
	assert.Equal(t, "12", got.ID)
	assert.Empty(t, got.ChatID)
	assert.Nil(t, got.FirstChat)
	assert.Nil(t, got.Amount)
	assert.Zero(t, got.Deadline)
	require.Len(t, got.Messages, 6)
	assert.Equal(t, Message{Raw: json.RawMessage(`{"role":5,"content":{"rich":1}}`)}, got.Messages[0])
	assert.Equal(t, `"odd"`, string(got.Messages[1].Raw))
	assert.Equal(t, "T", got.Messages[3].Content)
	assert.Empty(t, got.Messages[4].Attachments)
	assert.Equal(t, []Attachment{{ID: "3"}}, got.Messages[5].Attachments)
}

func TestATaskWithoutMessagesMayHaveAText(t *testing.T) {
	for _, name := range []string{"prompt", "content", "text", "body"} {
		got, err := answering(t, 200, jsonType, `{"task":{"id":"t","`+name+`":"Hello"}}`).PollTask(t.Context(), Poll{})
		require.NoError(t, err)
		assert.Equal(t, "Hello", got.LastUserText(), name)
	}
}

func TestTimesInEveryForm(t *testing.T) {
	want := time.Date(2026, 11, 9, 10, 20, 30, 0, time.UTC)
	for _, text := range []string{
		`"2026-11-09T10:20:30Z"`, `"2026-11-09T10:20:30.000Z"`, `"2026-11-09T12:20:30+02:00"`,
		`1794219630`, `1794219630000`, `"1794219630"`, `"1794219630000"`, `1794219630.0`, `1.79421963e9`,
	} {
		got, ok := readTime(json.RawMessage(text))
		assert.True(t, ok, text)
		assert.True(t, want.Equal(got), "%s: %v", text, got)
	}
	for _, text := range []string{`null`, `0`, `-5`, `""`, `"soon"`, `"NaN"`, `"Inf"`, `1e300`, `{}`, `true`, `"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-23:00"`} {
		got, ok := readTime(json.RawMessage(text))
		assert.False(t, ok, "%s: %v", text, got)
	}
}

func TestTheDeadlineIsTranslatedToOurClock(t *testing.T) {
	platform := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) // years off
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", platform.Format(http.TimeFormat))
		deadline := platform.Add(20 * time.Minute).Format(time.RFC3339)
		_, _ = io.WriteString(w, `{"task":{"id":"t","deadline":"`+deadline+`"},"status":"running","deadline":"`+deadline+`"}`)
	}))
	t.Cleanup(server.Close)
	c := clientOf(t, server.URL, nil)
	before := time.Now()
	task, err := c.PollTask(t.Context(), Poll{})
	require.NoError(t, err)
	assert.WithinRange(t, task.Deadline, before.Add(20*time.Minute), time.Now().Add(20*time.Minute))
	p, err := c.Progress(t.Context(), "t")
	require.NoError(t, err)
	assert.True(t, p.Deadline.Equal(platform.Add(20*time.Minute)), "by the platform's clock")
	assert.Equal(t, 20*time.Minute, *p.Remaining)
}

func TestProgressReadsEveryShape(t *testing.T) {
	for _, payload := range []string{
		`{"status":"running","deadline":"2026-11-09T10:20:30Z","limits":{"video":1}}`,
		`{"taskId":"t","status":"running","deadline":1794219630,"limits":{"video":1},"more":null}`,
		`{"id":"t","task":{"id":"t","status":"running"},"deadline_at":"1794219630000","limits":{"video":1}}`,
		`{"progress":{"status":"running","deadlineAt":1794219630000,"limits":{"video":1}}}`,
	} {
		for _, body := range wrapped(payload) {
			p, err := answering(t, 200, jsonType, body).Progress(t.Context(), "t")
			require.NoError(t, err, body)
			assert.Equal(t, ProgressStatus("running"), p.Status, body)
			assert.Equal(t, int64(1794219630), p.Deadline.Unix(), body)
			assert.JSONEq(t, `{"video":1}`, string(p.Limits), body)
			assert.False(t, p.Status.Over() || p.Status.Completed())
		}
	}
	p, err := answering(t, 200, jsonType, `{"status":7,"deadline":null,"limits":null}`).Progress(t.Context(), "t")
	require.NoError(t, err)
	assert.Equal(t, &TaskProgress{Raw: p.Raw}, p, "what is not known is absent")
	for _, body := range []string{`{"taskId":"u"}`, `{"data":{"task_id":"u"}}`, `{"task":{"id":"u","status":"cancelled"}}`, `{"id":"u"}`, `[]`, ``, `null`, `text`} {
		_, err := answering(t, 200, jsonType, body).Progress(t.Context(), "t")
		assert.ErrorIs(t, err, ErrMalformedResponse, body)
	}
}

func TestStatusSpellings(t *testing.T) {
	for status, want := range map[ProgressStatus][2]bool{
		"cancelled": {true, false}, "canceled": {true, false}, "CANCELLED": {true, false}, "failed": {true, false}, " Failed ": {true, false},
		"completed": {false, true}, "Complete": {false, true}, "processing": {false, false}, "": {false, false},
	} {
		assert.Equal(t, want, [2]bool{status.Over(), status.Completed()}, status)
	}
}

func TestHeartbeatReadsEveryShape(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"data":{"next_heartbeat_in_seconds":45}}`: 45 * time.Second, `{"ok":true,"data":{"nextHeartbeatInSeconds":"30"}}`: 30 * time.Second,
		`{"next_heartbeat_in_seconds":5}`: 5 * time.Second, `{"next_heartbeat_in_seconds":60}`: time.Minute,
		`{"next_heartbeat_in_seconds":4}`: 0, `{"next_heartbeat_in_seconds":61}`: 0, `{"next_heartbeat_in_seconds":-1}`: 0,
		`{"next_heartbeat_in_seconds":null}`: 0, `{"next_heartbeat_in_seconds":1e99}`: 0, `{"ok":true}`: 0, `{}`: 0, `null`: 0, `[]`: 0, ``: 0,
	} {
		got, err := answering(t, 200, jsonType, body).Heartbeat(t.Context(), Heartbeat{})
		require.NoError(t, err, body)
		assert.Equal(t, want, got.Next, body)
	}
	got, err := answering(t, 200, "text/plain", "OK").Heartbeat(t.Context(), Heartbeat{})
	require.NoError(t, err)
	assert.Nil(t, got.Raw)
	_, err = answering(t, 200, jsonType, `{"ok":tr`).Heartbeat(t.Context(), Heartbeat{})
	assert.ErrorIs(t, err, ErrMalformedResponse)
}

func TestMeReadsEveryShape(t *testing.T) {
	want := Profile{AgentID: "a-1", Name: "Example", WalletAddress: "0x01", ChatURL: "https://h/chat/a-1"}
	for _, payload := range []string{
		`{"id":"a-1","name":"Example","walletAddress":"0x01","chatUrl":"https://h/chat/a-1","wallet_balance":{}}`,
		`{"agentId":"a-1","agentName":"Example","wallet_address":"0x01","chat_url":"https://h/chat/a-1"}`,
		`{"agent":{"agent_id":"a-1","name":"Example","wallet_address":"0x01","url":"https://h/chat/a-1"}}`,
		`{"profile":{"agent_id":"a-1","name":"Example","wallet_address":"0x01"},"chatURL":"https://h/chat/a-1"}`,
	} {
		for _, body := range wrapped(payload) {
			p, err := answering(t, 200, jsonType, body).Me(t.Context())
			require.NoError(t, err, body)
			assert.JSONEq(t, body, string(p.Raw))
			p.Raw = nil
			assert.Equal(t, &want, p, body)
		}
	}
	p, err := answering(t, 200, jsonType, `{"bio":null}`).Me(t.Context())
	require.NoError(t, err)
	assert.Empty(t, p.AgentID)
	for _, body := range []string{``, `null`, `[]`, `"x"`, `{`} {
		_, err := answering(t, 200, jsonType, body).Me(t.Context())
		assert.ErrorIs(t, err, ErrMalformedResponse, body)
	}
}

func TestRespondTakesEverySuccessButNoDoubtfulOne(t *testing.T) {
	for _, c := range []struct{ contentType, body string }{
		{jsonType, ``},
		{jsonType, `{}`},
		{jsonType, `{"ok":true,"data":{"messageId":"m"}}`},
		{jsonType, `null`},
		{jsonType, `[]`},
		{jsonType, `"ok"`},
		{jsonType, `{"taskId":"t"}`},
		{jsonType, `{"id":"of the message"}`},
		{jsonType, `{"ok":true,"error":null}`},
		{"text/plain", `OK`},
		{"", `accepted`},
	} {
		r, err := answering(t, 200, c.contentType, c.body).Respond(t.Context(), "t", Response{Text: "Hi"})
		require.NoError(t, err, c.body)
		assert.Equal(t, 200, r.StatusCode)
		assert.Equal(t, json.Valid([]byte(c.body)), r.Raw != nil, c.body)
	}
	_, err := answering(t, 204, "", "").Respond(t.Context(), "t", Response{Text: "Hi"})
	assert.NoError(t, err)
	for _, c := range []struct {
		contentType, body string
		kind              error
	}{
		{jsonType, `{"ok":tru`, ErrMalformedResponse},
		{"text/plain", `{"ok":tru`, ErrMalformedResponse},
		{"", `[1,`, ErrMalformedResponse},
		{jsonType, `oops`, ErrMalformedResponse},
		{"text/html", ``, ErrMalformedResponse},
		{"text/html; charset=utf-8", `welcome`, ErrMalformedResponse},
		{"text/plain", ` <!doctype html>`, ErrMalformedResponse},
		{jsonType, "\uFEFF<html>", ErrMalformedResponse},
		{jsonType, `{"taskId":"u"}`, ErrMalformedResponse},
		{jsonType, `{"data":{"task_id":"u"}}`, ErrMalformedResponse},
		{jsonType, `{"task":{"id":"u"}}`, ErrMalformedResponse},
		{jsonType, `{"ok":false,"error":"try again"}`, ErrUnavailable},
		{jsonType, `{"ok":"false"}`, ErrUnavailable},
		{jsonType, `{"error":"broken"}`, ErrUnavailable},
	} {
		_, err := answering(t, 200, c.contentType, c.body).Respond(t.Context(), "t", Response{Text: "Hi"})
		assert.ErrorIs(t, err, c.kind, c.body)
	}
}

func TestAFailureUnderASuccessStatusIsNoTask(t *testing.T) {
	for _, body := range []string{`{"ok":false,"error":"PRIVATE"}`, `{"ok":false,"data":{"task":null}}`, `{"error":{"message":"PRIVATE"}}`} {
		task, err := answering(t, 200, jsonType, body).PollTask(t.Context(), Poll{})
		assert.ErrorIs(t, err, ErrUnavailable, body)
		assert.NotContains(t, err.Error(), "PRIVATE")
		assert.Nil(t, task)
	}
}
