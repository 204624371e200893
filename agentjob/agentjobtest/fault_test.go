package agentjobtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// bothListeners runs test over a socket and over the network in memory.
func bothListeners(t *testing.T, test func(*testing.T, *agentjobtest.Server, *agentjobtest.Agent)) {
	for name, start := range map[string]func(agentjobtest.Settings) *agentjobtest.Server{
		"socket": agentjobtest.NewServer, "pipe": agentjobtest.NewPipeServer,
	} {
		t.Run(name, func(t *testing.T) {
			srv := start(agentjobtest.Settings{})
			defer srv.Close()
			test(t, srv, srv.AddAgent("Helper"))
		})
	}
}

func TestFaultAnswers(t *testing.T) {
	bothListeners(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteHeartbeat, Times: 1, Status: 503, ContentType: "text/html", Body: "<p>down", RetryAfter: "3600"})
		r := call(t, srv, agent.Key, heartbeat, "")
		require.Equal(t, 503, r.status)
		require.Equal(t, "<p>down", r.body)
		require.Equal(t, "text/html", r.header.Get("Content-Type"))
		require.Equal(t, "3600", r.header.Get("Retry-After"))
		require.Zero(t, agent.Beats(), "not processed")

		srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteHeartbeat, Times: 1})
		require.Equal(t, 500, call(t, srv, agent.Key, heartbeat, "").status)

		srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteHeartbeat, Times: 1, Kind: agentjobtest.Redirect, Body: "https://elsewhere.example/"})
		r = call(t, srv, agent.Key, heartbeat, "")
		require.Equal(t, http.StatusTemporaryRedirect, r.status)
		require.Equal(t, "https://elsewhere.example/", r.header.Get("Location"))
		require.Zero(t, agent.Beats())
	})
}

func TestAnswerAfterProcessesFirst(t *testing.T) {
	bothListeners(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		srv.Inject(agentjobtest.Fault{
			Route: agentjobtest.RouteHeartbeat, Kind: agentjobtest.AnswerAfter, Times: 1,
			Status: 504, ContentType: "text/html", Body: "<p>gave up", RetryAfter: "7",
		})
		r := call(t, srv, agent.Key, heartbeat, "")
		require.Equal(t, 504, r.status)
		require.Equal(t, "<p>gave up", r.body)
		require.Equal(t, "text/html", r.header.Get("Content-Type"))
		require.Equal(t, "7", r.header.Get("Retry-After"))
		require.Equal(t, 1, agent.Beats(), "processed")
		require.Equal(t, 504, srv.Requests()[0].Status)

		srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.AnswerAfter})
		m := send(t, srv.User("alice").Chat(agent), "hello")
		claim(t, srv, agent)
		require.Equal(t, 500, call(t, srv, agent.Key, respondTo(m.ID), `{"text":"hi"}`).status)
		require.Equal(t, agentjobtest.StatusCompleted, m.Status())
	})
}

func TestFaultsThatCut(t *testing.T) {
	for kind, processed := range map[agentjobtest.FaultKind]bool{
		agentjobtest.CutBefore: false, agentjobtest.CutAfter: true, agentjobtest.Truncate: true,
	} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			bothListeners(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
				fault := srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRegister, Kind: kind})
				body := `{"idempotencyKey":"k1"}`
				r, err := try(t.Context(), srv, "", register, body)
				require.Error(t, err)
				if kind == agentjobtest.Truncate {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					require.Equal(t, http.StatusCreated, r.status)
					require.NotEmpty(t, r.body)
				}
				require.Equal(t, 1, fault.Count())
				fault.Clear()
				data := call(t, srv, "", register, body).json(t)["data"].(map[string]any)
				require.Equal(t, processed, data["apiKey"] == nil, "a replay has no key")
			})
		})
	}
}

func TestEndlessAnswersEndWithTheirClient(t *testing.T) {
	bothListeners(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Kind: agentjobtest.Endless})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/agents/me", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+agent.Key)
		res, err := srv.Client().Do(req)
		require.NoError(t, err)
		n, err := io.CopyN(io.Discard, res.Body, 1<<20)
		require.NoError(t, err)
		require.EqualValues(t, 1<<20, n)
		leave()
		require.NoError(t, res.Body.Close())
		require.NoError(t, srv.Await(t.Context(), agentjobtest.RouteMe, 1))
	})
}

func TestWrongTaskID(t *testing.T) {
	srv, agent, m := claimed(t, agentjobtest.Settings{})
	srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Kind: agentjobtest.WrongTaskID})
	got := call(t, srv, agent.Key, progressOf(m.ID), "").json(t)
	require.NotEqual(t, m.ID, got["taskId"])
	require.Len(t, got["taskId"], 36)
	require.Equal(t, "processing", got["status"])

	srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Kind: agentjobtest.WrongTaskID})
	require.Equal(t, agent.ID, call(t, srv, agent.Key, me, "").json(t)["agent_id"], "no task id in its path")
}

func TestDelays(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Kind: agentjobtest.Slow, Delay: time.Minute})
		start := time.Now()
		require.Equal(t, http.StatusOK, call(t, srv, agent.Key, me, "").status)
		require.Equal(t, time.Minute, time.Since(start))

		held := begin(t.Context(), srv, agent.Key, me)
		srv.Close()
		require.Error(t, (<-held).err)
		synctest.Wait()
		require.Equal(t, time.Minute, time.Since(start), "Close ends delays")
	})
}

func TestTimesSkipClearAndCount(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	status := func() int { return call(t, srv, agent.Key, me, "").status }
	fault := srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Status: 502, Skip: 1, Times: 2})
	require.Equal(t, []int{200, 502, 502, 200}, []int{status(), status(), status(), status()})
	require.Equal(t, 2, fault.Count())

	fault = srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Status: 503})
	srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteMe, Status: 504})
	require.Equal(t, []int{503, 503}, []int{status(), status()})
	require.Equal(t, http.StatusOK, call(t, srv, agent.Key, heartbeat, "").status, "other routes go well")
	fault.Clear()
	require.Equal(t, 504, status())
	require.Equal(t, 2, fault.Count())
}
