package agentjobtest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// claimed returns a server, an agent and a message that it has claimed.
func claimed(t *testing.T, settings agentjobtest.Settings) (*agentjobtest.Server, *agentjobtest.Agent, *agentjobtest.Message) {
	srv, agent := online(t, settings)
	m := send(t, srv.User("alice").Chat(agent), "hello")
	require.Equal(t, m.ID, claim(t, srv, agent)["id"])
	return srv, agent, m
}

func TestAReplyIsAcceptedOnce(t *testing.T) {
	srv, agent, m := claimed(t, agentjobtest.Settings{})
	for range 2 {
		r := call(t, srv, agent.Key, respondTo(m.ID), `{"text":"hi"}`)
		require.Equal(t, http.StatusOK, r.status)
		require.Equal(t, true, r.json(t)["ok"])
	}
	require.Equal(t, http.StatusConflict, call(t, srv, agent.Key, respondTo(m.ID), `{"text":"other"}`).status)
	require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Repeats: 1, Refused: 1, Charges: 1}, m.Counts())
	text, err := m.WaitReply(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hi", text)
	require.Equal(t, agentjobtest.Counts{}, srv.Counts("unknown"))
}

func TestRepliesWithoutIdempotencyCountTwice(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{NoResponseIdempotency: true})
	chat := srv.User("alice").Chat(agent)
	m := send(t, chat, "hello")
	claim(t, srv, agent)
	for range 2 {
		require.Equal(t, http.StatusOK, call(t, srv, agent.Key, respondTo(m.ID), `{"text":"hi"}`).status)
	}
	require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 2, Charges: 2}, m.Counts())
	require.Equal(t, [][2]string{{"user", "hello"}, {"assistant", "hi"}, {"assistant", "hi"}}, chat.Transcript())
}

func TestRepliesToTasksThatAreNotTheAgents(t *testing.T) {
	srv, agent, m := claimed(t, agentjobtest.Settings{})
	unclaimed := send(t, srv.User("bob").Chat(agent), "hello")
	other := srv.AddAgent("Other")
	for _, c := range []struct{ key, id string }{{agent.Key, "unknown"}, {other.Key, m.ID}, {agent.Key, unclaimed.ID}} {
		require.Equal(t, http.StatusNotFound, call(t, srv, c.key, respondTo(c.id), `{"text":"hi"}`).status)
		require.Equal(t, http.StatusNotFound, call(t, srv, c.key, progressOf(c.id), "").status)
		require.Equal(t, http.StatusNotFound, call(t, srv, c.key, reportOf(c.id), `{"seq":1}`).status)
	}
	require.Zero(t, m.Counts().Deliveries)
}

func TestCancelledTasks(t *testing.T) {
	srv, agent, m := claimed(t, agentjobtest.Settings{})
	m.Cancel()
	require.Equal(t, http.StatusConflict, call(t, srv, agent.Key, respondTo(m.ID), `{"text":"hi"}`).status)
	require.Equal(t, http.StatusConflict, call(t, srv, agent.Key, reportOf(m.ID), `{"seq":1}`).status)
	require.Equal(t, "cancelled", call(t, srv, agent.Key, progressOf(m.ID), "").json(t)["status"])
	_, err := m.WaitReply(t.Context())
	require.ErrorIs(t, err, agentjobtest.ErrCancelled)
	require.Equal(t, 1, m.Counts().Refused)

	queued := send(t, srv.User("alice").Chat(agent), "hello")
	queued.Cancel()
	require.Nil(t, claim(t, srv, agent), "cancelled before its claim")
}

func TestDeadlines(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	start := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	setClock(srv, start)
	call(t, srv, agent.Key, heartbeat, "")
	m := send(t, srv.User("alice").Chat(agent), "hello")
	claim(t, srv, agent)
	setClock(srv, start.Add(30*time.Minute-time.Millisecond))
	require.Subset(t, call(t, srv, agent.Key, progressOf(m.ID), "").json(t),
		map[string]any{"status": "processing", "deadline": "2026-11-10T12:30:00.000Z"})
	setClock(srv, start.Add(30*time.Minute))
	require.Equal(t, agentjobtest.StatusFailed, m.Status())
	require.Equal(t, "failed", call(t, srv, agent.Key, progressOf(m.ID), "").json(t)["status"])
	require.Equal(t, http.StatusConflict, call(t, srv, agent.Key, respondTo(m.ID), `{"text":"late"}`).status)
	_, err := m.WaitReply(t.Context())
	require.ErrorIs(t, err, agentjobtest.ErrExpired)
	m.Cancel()
	require.Equal(t, agentjobtest.StatusFailed, m.Status(), "what is over can't be cancelled")
}

func TestReplyTexts(t *testing.T) {
	for text, status := range map[string]int{
		"": http.StatusBadRequest, " \n\t": http.StatusBadRequest,
		strings.Repeat("a", 100_000): http.StatusOK, strings.Repeat("a", 100_001): http.StatusBadRequest,
		strings.Repeat("😀", 50_000): http.StatusOK, strings.Repeat("😀", 50_000) + "a": http.StatusBadRequest,
	} {
		srv, agent, m := claimed(t, agentjobtest.Settings{})
		body, err := json.Marshal(map[string]string{"text": text})
		require.NoError(t, err)
		require.Equal(t, status, call(t, srv, agent.Key, respondTo(m.ID), string(body)).status, "%d bytes", len(text))
	}
	srv, agent, m := claimed(t, agentjobtest.Settings{})
	for _, body := range []string{"", "{}", "no", `{"text":1}`, `{"text":"a","attachmentIds":["f1"]}`} {
		require.Equal(t, http.StatusBadRequest, call(t, srv, agent.Key, respondTo(m.ID), body).status, body)
	}
	require.Equal(t, agentjobtest.StatusProcessing, m.Status())
}

func TestProgressNumbersAndTheThreeSecondRule(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		m := send(t, srv.User("alice").Chat(agent), "hello")
		claim(t, srv, agent)
		report := func(body string) int { return call(t, srv, agent.Key, reportOf(m.ID), body).status }
		for _, bad := range []string{`{}`, `{"seq":0}`, `{"seq":1.5}`, `{"seq":1,"percent":-1}`, `{"seq":1,"percent":101}`, ``} {
			require.Equal(t, http.StatusBadRequest, report(bad), bad)
		}
		require.Zero(t, m.Progress().Seq)
		require.Equal(t, http.StatusOK, report(`{"seq":5,"message":"half","percent":50}`))
		require.Equal(t, http.StatusTooManyRequests, report(`{"seq":6,"message":"soon"}`))
		require.Equal(t, http.StatusOK, report(`{"seq":5,"message":"again"}`), "an old number is no report")
		got, err := m.WaitProgress(t.Context(), 5)
		require.NoError(t, err)
		require.Equal(t, "half", got.Message)
		require.Equal(t, 50.0, *got.Percent)

		time.Sleep(3 * time.Second) // virtual
		require.Equal(t, http.StatusOK, report(`{"seq":4,"message":"old"}`))
		require.Equal(t, "half", m.Progress().Message)
		require.Equal(t, http.StatusOK, report(`{"seq":6,"percent":0}`))
		require.Zero(t, *m.Progress().Percent)
		time.Sleep(3 * time.Second)
		require.Equal(t, http.StatusOK, report(`{"seq":7,"percent":100}`))
		time.Sleep(3 * time.Second)
		require.Equal(t, http.StatusOK, report(`{"seq":8}`))
		require.Nil(t, m.Progress().Percent, "not told is not zero")
	})
}

func TestFollowUpsSeeTheirOwnConversation(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	alice, bob := srv.User("alice").Chat(agent), srv.User("bob").Chat(agent)
	for _, c := range []struct {
		chat  *agentjobtest.Chat
		text  string
		first bool
		want  string
	}{
		{alice, "a1", true, `[{"role":"user","content":"a1"}]`},
		{bob, "b1", true, `[{"role":"user","content":"b1"}]`},
		{alice, "a2", false, `[{"role":"user","content":"a1"},{"role":"assistant","content":"re a1"},{"role":"user","content":"a2"}]`},
		{bob, "b2", false, `[{"role":"user","content":"b1"},{"role":"assistant","content":"re b1"},{"role":"user","content":"b2"}]`},
	} {
		m := send(t, c.chat, c.text)
		task := claim(t, srv, agent)
		messages, err := json.Marshal(task["messages"])
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(messages))
		require.Equal(t, c.first, task["is_first_chat"])
		require.Equal(t, http.StatusOK, call(t, srv, agent.Key, respondTo(m.ID), `{"text":"re `+c.text+`"}`).status)
	}
}

func TestWaitReplyReturnsWhenTheReplyComes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		m := send(t, srv.User("alice").Chat(agent), "hello")
		replies := make(chan string, 1)
		go func() {
			text, err := m.WaitReply(t.Context())
			if err != nil {
				text = err.Error()
			}
			replies <- text
		}()
		claim(t, srv, agent)
		require.NoError(t, m.WaitClaim(t.Context()))
		synctest.Wait()
		require.Empty(t, replies)
		call(t, srv, agent.Key, respondTo(m.ID), `{"text":"hi"}`)
		require.Equal(t, "hi", <-replies)
	})
}

func TestWaitReplyEndsAtTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		srv.Configure(func(s *agentjobtest.Settings) { s.Deadline = time.Minute })
		m := send(t, srv.User("ada").Chat(agent), "Hello")
		claim(t, srv, agent)
		began := time.Now()
		_, err := m.WaitReply(t.Context())
		require.ErrorIs(t, err, agentjobtest.ErrExpired)
		require.Equal(t, time.Minute, time.Since(began), "nothing else happens meanwhile")
	})
}
