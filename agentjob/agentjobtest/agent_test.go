package agentjobtest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestWithoutAKeyNothingIsHeld(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	srv.Revoke(agent.Key)
	for _, key := range []string{"", "ak_EXAMPLE", agent.Key} {
		for _, target := range []string{me, heartbeat, longPoll, progressOf("x"), reportOf("x"), respondTo("x")} {
			r := call(t, srv, key, target, "")
			require.Equal(t, http.StatusUnauthorized, r.status)
			require.Equal(t, `{"error":"Invalid or missing API key"}`, r.body)
		}
	}
	require.Equal(t, http.StatusUnauthorized, call(t, srv, "", me, "", "Authorization", srv.AddAgent("b").Key).status, "a key without Bearer")
}

func TestUnknownPathsAreAWebPage(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	for _, target := range []string{"GET /api/nothing", "DELETE /api/agents/me", "GET /api/agents/tasks/a/b/progress", "GET /"} {
		r := call(t, srv, agent.Key, target, "")
		require.Equal(t, http.StatusNotFound, r.status, target)
		require.Equal(t, "text/html; charset=utf-8", r.header.Get("Content-Type"))
		require.Contains(t, r.body, "<!DOCTYPE html>")
	}
}

func TestHeartbeat(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	require.Equal(t, 1, agent.Beats())
	require.Empty(t, agent.Revision())
	r := call(t, srv, agent.Key, heartbeat, `{"attachmentTypes":["image/png"],"serviceRevision":"v1.2_a-b","runtimeInfo":{"model":"m"}}`)
	require.JSONEq(t, `{"data":{"next_heartbeat_in_seconds":45}}`, r.body)
	require.Equal(t, "v1.2_a-b", agent.Revision())
	require.Equal(t, []string{"image/png"}, agent.AttachmentTypes())
	require.JSONEq(t, `{"model":"m"}`, string(agent.RuntimeInfo()))

	for _, bad := range []string{"", "a b", "ä", strings.Repeat("r", 129)} {
		require.Equal(t, http.StatusBadRequest, call(t, srv, agent.Key, heartbeat, `{"serviceRevision":"`+bad+`"}`).status, bad)
	}
	require.Equal(t, http.StatusBadRequest, call(t, srv, agent.Key, heartbeat, `{`).status)
	require.Equal(t, 2, agent.Beats(), "refused heartbeats don't count")
	require.Equal(t, "v1.2_a-b", agent.Revision())
}

func TestOnlineWindow(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	beat := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	setClock(srv, beat)
	require.Equal(t, http.StatusOK, call(t, srv, agent.Key, heartbeat, "").status)
	setClock(srv, beat.Add(2*time.Minute-time.Millisecond))
	require.True(t, agent.Online())
	require.Contains(t, call(t, srv, agent.Key, me, "").body, `"online_status":"online"`)
	setClock(srv, beat.Add(2*time.Minute))
	require.False(t, agent.Online())
	require.Contains(t, call(t, srv, agent.Key, me, "").body, `"online_status":"offline"`)

	chat := srv.User("alice").Chat(agent)
	_, err := chat.Send("hello")
	require.ErrorIs(t, err, agentjobtest.ErrOffline)
	require.Empty(t, chat.Transcript())
	queued, err := chat.SendMessage(agentjobtest.MessageOptions{Text: "hello", Queue: true})
	require.NoError(t, err)
	require.Equal(t, agentjobtest.StatusQueued, queued.Status())
	require.False(t, srv.AddAgent("never beat").Online())
}

func TestFiveFreeMessagesThenPaid(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	midnight := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	setClock(srv, midnight.Add(-time.Second))
	require.Equal(t, http.StatusOK, call(t, srv, agent.Key, heartbeat, "").status)
	for i := range 7 {
		m := send(t, srv.User("alice").Chat(agent), "hello")
		require.Equal(t, i < 5, m.Free, "message %d", i)
		require.Equal(t, 1, m.Counts().Charges)
	}
	setClock(srv, midnight)
	require.True(t, send(t, srv.User("bob").Chat(agent), "hello").Free)
}
