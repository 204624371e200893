package agentjobtest_test

import (
	"net/http"
	"net/http/httptest"
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

func TestProfile(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{MaxConcurrentChats: 3})
	beat := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	setClock(srv, beat)
	call(t, srv, agent.Key, heartbeat, "")
	alice, bob := srv.User("alice").Chat(agent), srv.User("bob").Chat(agent)
	for i := range 7 {
		chat := alice
		if i == 6 {
			chat = bob
		}
		m := send(t, chat, "hello")
		claim(t, srv, agent)
		call(t, srv, agent.Key, respondTo(m.ID), `{"text":"hi"}`)
	}
	send(t, bob, "not answered, so no receipt")

	profile := call(t, srv, agent.Key, me, "").json(t)
	require.Subset(t, profile, map[string]any{
		"agent_id": agent.ID, "name": "Helper", "wallet_address": agent.Wallet,
		"chat_url": srv.URL + "/chat/" + agent.ID, "max_concurrent_chats": 3.0,
		"status": map[string]any{"online": true, "online_status": "online", "last_heartbeat": "2026-11-10T12:00:00.000Z"},
		"stats":  map[string]any{"total_hired": 7.0, "total_chats": 2.0, "success_rate": 1.0, "total_revenue_usdc": 0.02},
	})
	require.Regexp(t, "^0x[0-9a-f]{40}$", agent.Wallet)

	fresh := srv.AddAgent("never beat")
	srv.Configure(func(s *agentjobtest.Settings) { s.CamelCase, s.Shape = true, agentjobtest.OKData })
	wrapped := call(t, srv, fresh.Key, me, "").json(t)
	require.Equal(t, true, wrapped["ok"])
	require.Subset(t, wrapped["data"], map[string]any{
		"agentId": fresh.ID, "chatUrl": srv.URL + "/chat/" + fresh.ID,
		"walletBalance": map[string]any{"usdc": "0.00", "usdcRaw": "0"},
		"status":        map[string]any{"online": false, "onlineStatus": "offline", "lastHeartbeat": nil},
	})
	require.JSONEq(t, `{"ok":true,"data":{"nextHeartbeatInSeconds":45}}`, call(t, srv, fresh.Key, heartbeat, "").body)
}

// A program may embed the platform in a server of its own.
func TestUnderAPrefix(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	mounted := httptest.NewServer(http.StripPrefix("/platform", srv))
	defer mounted.Close()
	_, err := srv.User("alice").Chat(agent).SendMessage(agentjobtest.MessageOptions{Text: "hello", ID: "a/../b"})
	require.NoError(t, err)
	claim(t, srv, agent)
	req, err := http.NewRequest(http.MethodGet, mounted.URL+"/platform/api/agents/tasks/a%2F..%2Fb/progress", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+agent.Key)
	res, err := mounted.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}

func TestTheDateIsThePlatforms(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	setClock(srv, time.Date(2031, 2, 3, 4, 5, 6, 0, time.FixedZone("east", 3600)))
	srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteHeartbeat, Status: 503})
	for _, target := range []string{me, heartbeat, "GET /unknown"} {
		require.Equal(t, "Mon, 03 Feb 2031 03:05:06 GMT", call(t, srv, agent.Key, target, "").header.Get("Date"), target)
	}
}
