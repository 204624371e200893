package agentjobtest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestRequestsAreRecorded(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	call(t, srv, agent.Key, respondTo("a%2Fb"), `{"text":"hi"}`)
	srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteReportProgress, Kind: agentjobtest.CutBefore})
	_, err := try(t.Context(), srv, agent.Key, reportOf("x"), `{"seq":1}`) // net/http would repeat a GET
	require.Error(t, err)
	call(t, srv, "", "GET /unknown", "")
	for _, route := range []agentjobtest.Route{agentjobtest.RouteHeartbeat, agentjobtest.RouteRespond, agentjobtest.RouteReportProgress} {
		require.NoError(t, srv.Await(t.Context(), route, 1))
	}
	got := srv.Requests()
	require.Len(t, got, 3)
	require.Equal(t, []int{200, 404, 0}, []int{got[0].Status, got[1].Status, got[2].Status})
	require.Equal(t, "/api/agents/tasks/a%2Fb/response", got[1].Path)
	require.Equal(t, `{"text":"hi"}`, string(got[1].Body))
	require.Equal(t, "Bearer "+agent.Key, got[1].Header.Get("Authorization"))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, srv.Await(ended, agentjobtest.RouteMe, 2), context.Canceled)
}

func TestTheRequestLogIsBounded(t *testing.T) {
	for _, most := range []int{1, 4} {
		srv, agent := online(t, agentjobtest.Settings{MaxRequests: most})
		for i := range 20 {
			call(t, srv, agent.Key, me, "")
			require.NoError(t, srv.Await(t.Context(), agentjobtest.RouteMe, i+1))
			require.LessOrEqual(t, len(srv.Requests()), most)
		}
		last := srv.Requests()
		require.Equal(t, agentjobtest.RouteMe, last[len(last)-1].Route)
	}
}

func TestTasksThatAreOverAreForgottenInTime(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{MaxTasks: 4})
	waiting := send(t, srv.User("bob").Chat(agent), "queued all the time")
	first := send(t, srv.User("alice").Chat(agent), "hello")
	require.Equal(t, waiting.ID, claim(t, srv, agent)["id"])
	require.Equal(t, first.ID, claim(t, srv, agent)["id"])
	require.Equal(t, http.StatusOK, call(t, srv, agent.Key, respondTo(first.ID), `{"text":"hi"}`).status)
	known := func(messages []*agentjobtest.Message) (n int) {
		for _, m := range messages {
			if srv.Counts(m.ID) != (agentjobtest.Counts{}) {
				n++
			}
		}
		return n
	}
	over := []*agentjobtest.Message{first}
	for range 20 {
		m := send(t, srv.User("alice").Chat(agent), "never mind")
		m.Cancel()
		over = append(over, m)
		require.LessOrEqual(t, known(over), 4)
		require.NotZero(t, srv.Counts(m.ID), "the newest is known")
	}
	require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Charges: 1}, first.Counts(), "who holds a message keeps what it tells")
	require.Equal(t, http.StatusNotFound, call(t, srv, agent.Key, progressOf(first.ID), "").status)
	require.False(t, srv.HandOutAgain(first.ID))
	require.Equal(t, http.StatusOK, call(t, srv, agent.Key, progressOf(waiting.ID), "").status, "an open task is never forgotten")
}

func TestManyAgentsAndCustomersAtOnce(t *testing.T) {
	srv := agentjobtest.NewServer(agentjobtest.Settings{MaxConcurrentChats: 5})
	defer srv.Close()
	const agents, messages = 4, 10
	var all sync.WaitGroup
	for i := range agents {
		agent := srv.AddAgent(fmt.Sprint("agent ", i))
		call(t, srv, agent.Key, heartbeat, "")
		for range 2 { // providers that share a key
			all.Go(func() {
				for range messages / 2 {
					r, err := try(t.Context(), srv, agent.Key, "GET /api/agents/tasks?wait=60", "")
					if !assert.NoError(t, err) {
						return
					}
					id := r.json(t)["task"].(map[string]any)["id"].(string)
					r, err = try(t.Context(), srv, agent.Key, respondTo(id), `{"text":"hi"}`)
					assert.NoError(t, err)
					assert.Equal(t, http.StatusOK, r.status)
				}
			})
		}
		for j := range messages {
			all.Go(func() {
				m, err := srv.User(fmt.Sprint("user ", j)).Chat(agent).Send("hello")
				if !assert.NoError(t, err) {
					return
				}
				text, err := m.WaitReply(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, "hi", text)
				assert.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Charges: 1}, m.Counts())
			})
		}
	}
	all.Wait()
}

func TestBodiesInTheLogAreBounded(t *testing.T) {
	srv, agent := online(t, agentjobtest.Settings{})
	body := strings.Repeat(" ", 8<<20)
	for range 10 {
		require.Equal(t, http.StatusBadRequest, call(t, srv, agent.Key, respondTo("x"), body).status)
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, call(t, srv, agent.Key, respondTo("x"), body+" ").status)
	require.NoError(t, srv.Await(t.Context(), agentjobtest.RouteRespond, 10))
	total := 0
	for _, r := range srv.Requests() {
		total += len(r.Body)
	}
	require.LessOrEqual(t, total, 64<<20)
	require.GreaterOrEqual(t, total, 16<<20, "the newest stay")
}

func TestCloseEndsWaits(t *testing.T) {
	bubble(t, func(t *testing.T, srv *agentjobtest.Server, agent *agentjobtest.Agent) {
		m := send(t, srv.User("alice").Chat(agent), "hello")
		claim(t, srv, agent)
		errs := make(chan error, 3)
		go func() { _, err := m.WaitReply(context.Background()); errs <- err }()
		go func() { _, err := m.WaitProgress(context.Background(), 1); errs <- err }()
		go func() { errs <- srv.Await(context.Background(), agentjobtest.RouteMe, 1) }()
		synctest.Wait()
		require.Empty(t, errs)
		srv.Close()
		for range 3 {
			require.ErrorIs(t, <-errs, http.ErrServerClosed)
		}
	})
}
