package agentjobtest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// bubble runs test with a server in virtual time and an agent that is online.
func bubble(t *testing.T, test func(*testing.T, *agentjobtest.Server, *agentjobtest.Agent)) {
	synctest.Test(t, func(t *testing.T) {
		srv := agentjobtest.NewPipeServer(agentjobtest.Settings{})
		defer srv.Close()
		agent := srv.AddAgent("Helper")
		call(t, srv, agent.Key, heartbeat, "")
		test(t, srv, agent)
	})
}

type tried struct {
	reply
	err error
	at  time.Time
}

// begin sends a request from another goroutine and returns once the server holds it.
func begin(ctx context.Context, srv *agentjobtest.Server, key, target string) <-chan tried {
	out := make(chan tried, 1)
	go func() {
		r, err := try(ctx, srv, key, target, "")
		out <- tried{r, err, time.Now()}
	}()
	synctest.Wait()
	return out
}

func TestAnEmptyPollIsHeldForItsWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		for query, wait := range map[string]time.Duration{"": 30 * time.Second, "?wait=25": 25 * time.Second, "?wait=1": time.Second} {
			start := time.Now()
			r := call(t, srv, agent.Key, "GET /api/agents/tasks"+query, "")
			require.Equal(t, wait, time.Since(start))
			require.Equal(t, `{"task":null}`, r.body)
		}
		for _, bad := range []string{"0", "61", "x"} {
			start := time.Now()
			require.Equal(t, http.StatusBadRequest, call(t, srv, agent.Key, "GET /api/agents/tasks?wait="+bad, "").status)
			require.Zero(t, time.Since(start))
		}
	})
}

func TestASendEndsOnePollOfItsAgentAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		other := srv.AddAgent("Other")
		start := time.Now()
		mine, theirs := begin(t.Context(), srv, agent.Key, longPoll), begin(t.Context(), srv, other.Key, longPoll)
		time.Sleep(7 * time.Second) // virtual
		m := send(t, srv.User("alice").Chat(agent), "hello")
		got := <-mine
		require.NoError(t, got.err)
		require.Equal(t, 7*time.Second, got.at.Sub(start))
		require.Contains(t, got.body, m.ID)
		got = <-theirs
		require.Equal(t, `{"task":null}`, got.body)
		require.Equal(t, 25*time.Second, got.at.Sub(start))
	})
}

func TestAPollWhoseClientLeftClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		ctx, leave := context.WithCancel(t.Context())
		left := begin(ctx, srv, agent.Key, longPoll)
		leave()
		require.ErrorIs(t, (<-left).err, context.Canceled)
		require.NoError(t, srv.Await(t.Context(), agentjobtest.RoutePoll, 1))
		m := send(t, srv.User("alice").Chat(agent), "hello")
		require.Equal(t, agentjobtest.StatusQueued, m.Status())
		require.Equal(t, m.ID, claim(t, srv, agent)["id"])
		require.Equal(t, 1, m.Counts().Claims)
	})
}

func TestARevokedKeyClaimsNothingAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		held := begin(t.Context(), srv, agent.Key, longPoll)
		srv.Revoke(agent.Key)
		m := send(t, srv.User("alice").Chat(agent), "hello")
		require.Equal(t, `{"task":null}`, (<-held).body)
		require.Equal(t, agentjobtest.StatusQueued, m.Status())
		require.Equal(t, http.StatusUnauthorized, call(t, srv, agent.Key, poll, "").status)
	})
}

func TestRoomForAnotherChatWakesAPoll(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		var messages []*agentjobtest.Message
		for range 3 {
			messages = append(messages, send(t, srv.User("alice").Chat(agent), "hello"))
		}
		require.Equal(t, messages[0].ID, claim(t, srv, agent)["id"])
		require.Equal(t, messages[1].ID, claim(t, srv, agent)["id"])
		start := time.Now()
		held := begin(t.Context(), srv, agent.Key, longPoll)
		require.Equal(t, agentjobtest.StatusQueued, messages[2].Status(), "two chats are the most")
		require.Equal(t, http.StatusOK, call(t, srv, agent.Key, respondTo(messages[0].ID), `{"text":"hi"}`).status)
		require.Contains(t, (<-held).body, messages[2].ID)
		require.Zero(t, time.Since(start))
	})
}

func TestADeadlineThatPassesWakesAPoll(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		srv.Configure(func(s *agentjobtest.Settings) { s.Deadline = time.Minute })
		var messages []*agentjobtest.Message
		for range 3 {
			messages = append(messages, send(t, srv.User("alice").Chat(agent), "hello"))
		}
		start := time.Now()
		require.Equal(t, messages[0].ID, claim(t, srv, agent)["id"])
		<-time.After(10 * time.Second)
		require.Equal(t, messages[1].ID, claim(t, srv, agent)["id"])
		<-time.After(40 * time.Second)
		held := <-begin(t.Context(), srv, agent.Key, longPoll)
		require.Contains(t, held.body, messages[2].ID)
		require.Equal(t, time.Minute, held.at.Sub(start), "when the first one's time is over")
		require.Equal(t, agentjobtest.StatusFailed, messages[0].Status())
	})
}

func TestAClockThatStandsStillMakesNoHotLoop(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		stopped, calls := time.Now(), 0
		srv.Configure(func(s *agentjobtest.Settings) {
			s.MaxConcurrentChats, s.Deadline = 1, time.Nanosecond
			s.Now = func() time.Time { calls++; return stopped } // the server's lock guards calls
		})
		m := send(t, srv.User("alice").Chat(agent), "hello")
		require.Equal(t, m.ID, claim(t, srv, agent)["id"])
		require.JSONEq(t, `{"task":null}`, call(t, srv, agent.Key, longPoll, "").body)
		require.Less(t, calls, 25*100*10)
	})
}

func TestCloseEndsPollsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := agentjobtest.NewPipeServer(agentjobtest.Settings{})
		agent := srv.AddAgent("Helper")
		start := time.Now()
		held := begin(t.Context(), srv, agent.Key, longPoll)
		srv.Close()
		srv.Close() // harmless
		<-held
		require.Zero(t, time.Since(start))
		_, err := try(t.Context(), srv, agent.Key, me, "")
		require.Error(t, err)
	})
}

func TestAttachmentsGoToPollsThatReadThem(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	image := agentjobtest.Attachment{ID: "f1", Name: "a.png", ContentType: "image/png", Size: 3, URL: "https://files.example/a"}
	look := agentjobtest.MessageOptions{Text: "look", Attachments: []agentjobtest.Attachment{image}}
	chat := srv.User("alice").Chat(agent)
	_, err := chat.SendMessage(look)
	require.ErrorIs(t, err, agentjobtest.ErrFileType)
	require.Empty(t, chat.Transcript())
	call(t, srv, agent.Key, heartbeat, `{"attachmentTypes":["image/png"]}`)
	m, err := chat.SendMessage(look)
	require.NoError(t, err)
	require.Nil(t, claim(t, srv, agent))
	require.Nil(t, claim(t, srv, agent, "X-Agentjob-Attachment-Types", "image/jpeg"))
	task := claim(t, srv, agent, "x-agentjob-attachment-types", "image/jpeg, image/png")
	require.Equal(t, m.ID, task["id"])
	files := task["messages"].([]any)[0].(map[string]any)["attachments"].([]any)
	require.Equal(t, map[string]any{"id": "f1", "name": "a.png", "contentType": "image/png", "size": 3.0, "url": image.URL}, files[0])
}

func TestShapesOfTasks(t *testing.T) {
	for shape, unwrap := range map[agentjobtest.Shape][]string{
		agentjobtest.Native: {"task"}, agentjobtest.Bare: nil, agentjobtest.Data: {"data"},
		agentjobtest.OKData: {"data", "task"}, agentjobtest.DataTask: {"data", "task"},
	} {
		for _, camel := range []bool{false, true} {
			srv, agent := online(t, agentjobtest.Settings{Shape: shape, CamelCase: camel, AmountAsNumber: camel, DeadlineInTask: camel})
			m := send(t, srv.User("alice").Chat(agent), "hello")
			task := call(t, srv, agent.Key, poll, "").json(t)
			if shape == agentjobtest.OKData {
				require.Equal(t, true, task["ok"])
			}
			for _, name := range unwrap {
				task = task[name].(map[string]any)
			}
			require.Equal(t, m.ID, task["id"], "shape %d", shape)
			if camel {
				require.Subset(t, task, map[string]any{"isFirstChat": true, "amountUsdc": 0.01})
				deadline, err := time.Parse("2006-01-02T15:04:05.000Z", task["deadline"].(string))
				require.NoError(t, err)
				require.WithinDuration(t, time.Now().Add(30*time.Minute), deadline, time.Minute)
			} else {
				require.Subset(t, task, map[string]any{"is_first_chat": true, "amount_usdc": "0.01"})
				require.NotContains(t, task, "deadline")
			}
		}
	}
}

func TestShapesOfEmptyPolls(t *testing.T) {
	for empty, want := range map[agentjobtest.EmptyPoll]reply{
		agentjobtest.NullTask:    {status: http.StatusOK, body: `{"task":null}`},
		agentjobtest.EmptyObject: {status: http.StatusOK, body: `{}`},
		agentjobtest.NoContent:   {status: http.StatusNoContent},
		agentjobtest.EmptyBody:   {status: http.StatusOK},
	} {
		bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
			srv.Configure(func(s *agentjobtest.Settings) { s.Empty = empty })
			r := call(t, srv, agent.Key, longPoll, "")
			require.Equal(t, want, reply{status: r.status, body: r.body})
		})
	}
}

func TestTaskIDsThatNeedEscaping(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	for _, id := range []string{"a/b", "..", ".", "nul\x00", "100%", "%2F", "a?b#c", "ä b"} {
		m, err := srv.User("alice").Chat(agent).SendMessage(agentjobtest.MessageOptions{Text: "hello", ID: id})
		require.NoError(t, err)
		require.Equal(t, id, claim(t, srv, agent)["id"])
		escaped := url.PathEscape(id)
		require.Equal(t, id, call(t, srv, agent.Key, progressOf(escaped), "").json(t)["taskId"])
		require.Equal(t, http.StatusOK, call(t, srv, agent.Key, respondTo(escaped), `{"text":"hi"}`).status)
		require.Equal(t, agentjobtest.StatusCompleted, m.Status(), "%q", id)
	}
}

func TestHandOutAgain(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{MaxConcurrentChats: 1})
	chat := srv.User("alice").Chat(agent)
	m := send(t, chat, "hello")
	require.Equal(t, m.ID, claim(t, srv, agent)["id"])
	srv.HandOutAgain(m.ID)
	require.Equal(t, m.ID, claim(t, srv, agent)["id"], "while it is open")
	require.Equal(t, http.StatusOK, call(t, srv, agent.Key, respondTo(m.ID), `{"text":"hi"}`).status)
	next := send(t, chat, "more")
	srv.HandOutAgain(m.ID)
	require.Equal(t, m.ID, claim(t, srv, agent)["id"], "after its reply, and first")
	require.Equal(t, next.ID, claim(t, srv, agent)["id"])
	require.Equal(t, 3, m.Counts().Claims)
	require.Equal(t, agentjobtest.StatusCompleted, m.Status())
	require.False(t, srv.HandOutAgain("unknown"))

	queued := send(t, chat, "again before its claim")
	call(t, srv, agent.Key, respondTo(next.ID), `{"text":"hi"}`)
	require.True(t, srv.HandOutAgain(queued.ID))
	for range 2 {
		require.Equal(t, queued.ID, claim(t, srv, agent)["id"])
		require.Equal(t, agentjobtest.StatusProcessing, queued.Status())
	}
}

func TestARawTaskIsHandedOutAsItIs(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	_, err := srv.User("alice").Chat(agent).SendMessage(agentjobtest.MessageOptions{Task: json.RawMessage(`{"id":7,"messages":"none"}`)})
	require.NoError(t, err)
	require.Equal(t, `{"task":{"id":7,"messages":"none"}}`, call(t, srv, agent.Key, poll, "").body)
}

func TestMessagesThatCantBeSent(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	chat := srv.User("alice").Chat(agent)
	first, err := chat.SendMessage(agentjobtest.MessageOptions{Text: "one", ID: "t1"})
	require.NoError(t, err)
	for problem, o := range map[string]agentjobtest.MessageOptions{
		`"t1" already`: {Text: "two", ID: "t1"},
		"not JSON":     {Task: json.RawMessage(`{"id":`)},
	} {
		_, err = chat.SendMessage(o)
		require.ErrorContains(t, err, problem)
	}
	require.Equal(t, [][2]string{{"user", "one"}}, chat.Transcript())
	require.Equal(t, first.ID, claim(t, srv, agent)["id"])
}
