package agentjobtest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A provider speaks plain HTTP to a server.
type provider struct {
	t   *testing.T
	srv *agentjobtest.Server
	key string
}

func (p provider) do(method, path, body string, header ...string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequest(method, p.srv.URL+path, bytes.NewReader([]byte(body)))
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+p.key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := p.srv.Client().Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(data)
}

func (p provider) task(id, last string) string {
	return "/api/agents/tasks/" + url.PathEscape(id) + "/" + last
}

func inBubble(t *testing.T, settings agentjobtest.Settings, test func(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, p provider)) {
	synctest.Test(t, func(t *testing.T) {
		srv := agentjobtest.NewPipeServer(settings)
		defer srv.Close()
		a := srv.AddAgent("Agent")
		test(t, srv, a, provider{t, srv, a.Key})
	})
}

func queue(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, o agentjobtest.MessageOptions) *agentjobtest.Message {
	t.Helper()
	o.Queue = true
	m, err := srv.User("alice").Chat(a).SendMessage(o)
	require.NoError(t, err)
	return m
}

func TestKeyIsCheckedBeforeAPollIsHeld(t *testing.T) {
	inBubble(t, agentjobtest.Settings{}, func(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, p provider) {
		srv.Revoke(a.Key)
		began := time.Now()
		status, body := p.do("GET", "/api/agents/tasks?wait=30", "")
		require.Equal(t, 401, status)
		require.Equal(t, `{"error":"Invalid or missing API key"}`, body)
		require.Zero(t, time.Since(began))
		status, body = p.do("GET", "/api/none", "")
		require.Equal(t, 404, status)
		require.Contains(t, body, "<!DOCTYPE html>")
	})
}

func TestLongPollAndOnlineWindow(t *testing.T) {
	inBubble(t, agentjobtest.Settings{}, func(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, p provider) {
		_, err := srv.User("alice").Chat(a).Send("Hello")
		require.ErrorIs(t, err, agentjobtest.ErrOffline)
		status, _ := p.do("POST", "/api/agents/heartbeat", "")
		require.Equal(t, 200, status, "the body is optional")
		status, _ = p.do("POST", "/api/agents/heartbeat", `{"serviceRevision":"a b"}`)
		require.Equal(t, 400, status)
		require.True(t, a.Online())

		began := time.Now()
		status, body := p.do("GET", "/api/agents/tasks?wait=25", "")
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"task":null}`, body)
		require.Equal(t, 25*time.Second, time.Since(began))

		time.AfterFunc(10*time.Second, func() {
			_, err := srv.User("alice").Chat(a).Send("Hello")
			require.NoError(t, err)
		})
		began = time.Now()
		_, body = p.do("GET", "/api/agents/tasks?wait=25", "")
		require.Contains(t, body, "Hello")
		require.Equal(t, 10*time.Second, time.Since(began))
		<-time.After(2 * time.Minute)
		require.False(t, a.Online())
		status, _ = p.do("GET", "/api/agents/tasks?wait=0", "")
		require.Equal(t, 400, status)
	})
}

func TestEveryShapeHandsOutTheSameTask(t *testing.T) {
	shapes := []agentjobtest.Shape{agentjobtest.Native, agentjobtest.Bare, agentjobtest.Data, agentjobtest.OKData, agentjobtest.DataTask}
	for _, shape := range shapes {
		for _, camel := range []bool{false, true} {
			inBubble(t, agentjobtest.Settings{Shape: shape, CamelCase: camel, AmountAsNumber: camel, DeadlineInTask: true}, func(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, p provider) {
				m := queue(t, srv, a, agentjobtest.MessageOptions{Text: "Hello"})
				_, body := p.do("GET", "/api/agents/tasks?wait=1", "")
				require.Contains(t, body, `"id":"`+m.ID+`"`)
				require.Contains(t, body, `"deadline"`)
				require.Equal(t, camel, strings.Contains(body, "chatId"))
				require.Equal(t, !camel, strings.Contains(body, "chat_id"))
			})
		}
	}
	for empty, want := range map[agentjobtest.EmptyPoll]string{agentjobtest.NullTask: `{"task":null}`, agentjobtest.EmptyObject: `{}`, agentjobtest.NoContent: "", agentjobtest.EmptyBody: ""} {
		inBubble(t, agentjobtest.Settings{Empty: empty}, func(t *testing.T, _ *agentjobtest.Server, _ *agentjobtest.Agent, p provider) {
			_, body := p.do("GET", "/api/agents/tasks?wait=1", "")
			require.Equal(t, want, body)
		})
	}
}

func TestClaimsAreLimitedAndMatched(t *testing.T) {
	inBubble(t, agentjobtest.Settings{}, func(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, p provider) {
		png := []agentjobtest.Attachment{{ID: "f", Name: "a.png", ContentType: "image/png", Size: 1, URL: "https://files.test/a"}}
		file := queue(t, srv, a, agentjobtest.MessageOptions{Text: "Look", Attachments: png})
		_, body := p.do("GET", "/api/agents/tasks?wait=1", "", "X-Agentjob-Attachment-Types", "image/jpeg")
		require.NotContains(t, body, file.ID)
		_, body = p.do("GET", "/api/agents/tasks?wait=1", "", "X-Agentjob-Attachment-Types", "image/jpeg, image/png")
		require.Contains(t, body, file.ID)
		queue(t, srv, a, agentjobtest.MessageOptions{Text: "two"})
		queue(t, srv, a, agentjobtest.MessageOptions{Text: "three"})
		_, body = p.do("GET", "/api/agents/tasks?wait=1", "")
		require.Contains(t, body, "two")
		_, body = p.do("GET", "/api/agents/tasks?wait=1", "")
		require.JSONEq(t, `{"task":null}`, body, "two chats at once are the limit")
	})
}

func TestRepliesAreTakenOnce(t *testing.T) {
	inBubble(t, agentjobtest.Settings{Deadline: time.Minute}, func(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, p provider) {
		m := queue(t, srv, a, agentjobtest.MessageOptions{ID: "a/../b\x00%", Text: "Hello"})
		respond := func(body string) int { status, _ := p.do("POST", p.task(m.ID, "response"), body); return status }
		require.Equal(t, 404, respond(`{"text":"early"}`), "not claimed yet")
		p.do("GET", "/api/agents/tasks?wait=1", "")
		require.Equal(t, 400, respond(`{"text":" "}`))
		require.Equal(t, 400, respond(`{"text":"`+strings.Repeat("\U0001F600", 50_001)+`"}`))
		other := provider{t, srv, srv.AddAgent("Other").Key}
		status, _ := other.do("POST", p.task(m.ID, "response"), `{"text":"mine"}`)
		require.Equal(t, 404, status)
		require.Equal(t, 200, respond(`{"text":"Hi"}`))
		require.Equal(t, 200, respond(`{"text":"Hi"}`))
		require.Equal(t, 409, respond(`{"text":"Other"}`))
		require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Repeats: 1, Refused: 1, Charges: 1}, m.Counts())
		srv.Configure(func(s *agentjobtest.Settings) { s.NoResponseIdempotency = true })
		require.Equal(t, 200, respond(`{"text":"Hi"}`))
		require.Equal(t, 2, m.Counts().Deliveries)

		m = queue(t, srv, a, agentjobtest.MessageOptions{Text: "late"})
		p.do("GET", "/api/agents/tasks?wait=1", "")
		_, err := m.WaitReply(context.Background())
		require.ErrorIs(t, err, agentjobtest.ErrExpired, "WaitReply ends at the deadline")
		require.Equal(t, 409, respond(`{"text":"Hi"}`))
		_, body := p.do("GET", p.task(m.ID, "progress"), "")
		require.Contains(t, body, `"status":"failed"`)

		m = queue(t, srv, a, agentjobtest.MessageOptions{Text: "no"})
		p.do("GET", "/api/agents/tasks?wait=1", "")
		m.Cancel()
		require.Equal(t, 409, respond(`{"text":"Hi"}`))
		_, err = m.WaitReply(context.Background())
		require.ErrorIs(t, err, agentjobtest.ErrCancelled)
	})
}

func TestProgressRules(t *testing.T) {
	inBubble(t, agentjobtest.Settings{}, func(t *testing.T, srv *agentjobtest.Server, a *agentjobtest.Agent, p provider) {
		m := queue(t, srv, a, agentjobtest.MessageOptions{Text: "Hello"})
		p.do("GET", "/api/agents/tasks?wait=1", "")
		report := func(body string) int { status, _ := p.do("POST", p.task(m.ID, "progress"), body); return status }
		require.Equal(t, 400, report(`{"seq":0}`))
		require.Equal(t, 400, report(`{"seq":1,"percent":101}`))
		require.Equal(t, 200, report(`{"seq":2,"message":"two","percent":40}`))
		require.Equal(t, 200, report(`{"seq":1,"message":"one"}`))
		require.Equal(t, "two", m.Progress().Message, "an old number never overwrites")
		require.Equal(t, 429, report(`{"seq":3}`))
		<-time.After(3 * time.Second)
		require.Equal(t, 200, report(`{"seq":3,"message":"three"}`))
		require.Equal(t, "three", m.Progress().Message)
	})
}

func TestFaults(t *testing.T) {
	for name, start := range map[string]func(agentjobtest.Settings) *agentjobtest.Server{"socket": agentjobtest.NewServer, "pipe": agentjobtest.NewPipeServer} {
		t.Run(name, func(t *testing.T) {
			srv := start(agentjobtest.Settings{})
			defer srv.Close()
			a := srv.AddAgent("Agent")
			p := provider{t, srv, a.Key}
			beat := func(f agentjobtest.Fault) (status int, body string, beats int) {
				f.Route, f.Times = agentjobtest.RouteHeartbeat, 1
				in := srv.Inject(f)
				before := a.Beats()
				status, body = p.do("POST", "/api/agents/heartbeat", "{}")
				require.Equal(t, 1, in.Count())
				return status, body, a.Beats() - before
			}
			for _, c := range []struct {
				fault  agentjobtest.Fault
				status int
				beats  int
			}{
				{agentjobtest.Fault{Status: 503, Body: "<html>", ContentType: "text/html"}, 503, 0},
				{agentjobtest.Fault{Kind: agentjobtest.CutBefore}, 0, 0},
				{agentjobtest.Fault{Kind: agentjobtest.CutAfter}, 0, 1},
				{agentjobtest.Fault{Kind: agentjobtest.Truncate}, 0, 1},
				{agentjobtest.Fault{Kind: agentjobtest.Slow, Delay: time.Millisecond}, 200, 1},
			} {
				status, _, beats := beat(c.fault)
				require.Equal(t, c.status, status, "%+v", c.fault)
				require.Equal(t, c.beats, beats, "%+v", c.fault)
			}
			skip := srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Skip: 1, Status: 500})
			for i, want := range []int{200, 500, 500} {
				status, _ := p.do("GET", "/api/agents/me", "")
				require.Equal(t, want, status, i)
			}
			skip.Clear()
			status, _ := p.do("GET", "/api/agents/me", "")
			require.Equal(t, 200, status)
			require.NotEmpty(t, srv.Requests())
		})
	}
}

func TestCloseEndsPolls(t *testing.T) {
	srv := agentjobtest.NewServer(agentjobtest.Settings{})
	p := provider{t, srv, srv.AddAgent("Agent").Key}
	done := make(chan struct{})
	go func() { defer close(done); p.do("GET", "/api/agents/tasks?wait=60", "") }()
	srv.Close()
	<-done
}
