package agentjobtest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// setClock stops the platform clock at now.
func setClock(srv *agentjobtest.Server, now time.Time) {
	srv.Configure(func(s *agentjobtest.Settings) { s.Now = func() time.Time { return now } })
}

func registering(t *testing.T, settings agentjobtest.Settings) *agentjobtest.Server {
	srv := agentjobtest.NewServer(settings)
	t.Cleanup(srv.Close)
	return srv
}

func TestRegistrationAnswersAndReplays(t *testing.T) {
	for name, returnsKey := range map[string]bool{"null key": false, "key again": true} {
		t.Run(name, func(t *testing.T) {
			srv := registering(t, agentjobtest.Settings{ReplayReturnsKey: returnsKey})
			const body = `{"agentName":"Helper","idempotencyKey":"k1"}`
			first := call(t, srv, "", register, body)
			require.Equal(t, http.StatusCreated, first.status)
			data := first.json(t)["data"].(map[string]any)
			agent := srv.Agent(data["agentId"].(string))
			require.NotNil(t, agent)
			require.Equal(t, "Helper", agent.Name)
			require.Equal(t, agent.Key, data["apiKey"])
			require.Equal(t, http.StatusOK, call(t, srv, agent.Key, me, "").status)

			again := call(t, srv, "", register, body)
			require.Equal(t, http.StatusCreated, again.status)
			replayed := again.json(t)["data"].(map[string]any)
			require.Equal(t, agent.ID, replayed["agentId"])
			if returnsKey {
				require.Equal(t, agent.Key, replayed["apiKey"])
			} else {
				require.Contains(t, replayed, "apiKey")
				require.Nil(t, replayed["apiKey"])
			}
		})
	}
}

func TestAddressLimitCountsReplaysAndComesFirst(t *testing.T) {
	srv := registering(t, agentjobtest.Settings{})
	const body = `{"idempotencyKey":"k1"}`
	for range 2 {
		require.Equal(t, http.StatusCreated, call(t, srv, "", register, body).status)
	}
	third := call(t, srv, "", register, body)
	require.Equal(t, http.StatusTooManyRequests, third.status, "even a replay counts against the address")
	require.Contains(t, third.body, "IP address")
	srv.Configure(func(s *agentjobtest.Settings) { s.RegistrationDisabled = true })
	require.Equal(t, http.StatusTooManyRequests, call(t, srv, "", register, body).status, "the address comes before the switch")
}

func TestRegistrationSwitchesComeAfterTheReplay(t *testing.T) {
	for word, change := range map[string]func(*agentjobtest.Settings){
		"disabled": func(s *agentjobtest.Settings) { s.RegistrationDisabled = true },
		"busy":     func(s *agentjobtest.Settings) { s.RegistrationBusy = true },
	} {
		t.Run(word, func(t *testing.T) {
			srv := registering(t, agentjobtest.Settings{IPDailyLimit: 100})
			require.Equal(t, http.StatusCreated, call(t, srv, "", register, `{"idempotencyKey":"old"}`).status)
			srv.Configure(change)
			refused := call(t, srv, "", register, `{"idempotencyKey":"new"}`)
			require.Equal(t, http.StatusServiceUnavailable, refused.status)
			require.Contains(t, refused.json(t)["error"], word)
			require.Equal(t, http.StatusCreated, call(t, srv, "", register, `{"idempotencyKey":"old"}`).status)
		})
	}
}

func TestDailyQuotaAndItsReset(t *testing.T) {
	srv := registering(t, agentjobtest.Settings{IPDailyLimit: 100, DailyLimit: 1})
	midnight := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	setClock(srv, midnight.Add(-time.Second).In(time.FixedZone("east", 9*3600)))
	require.Equal(t, http.StatusCreated, call(t, srv, "", register, `{}`).status)
	require.Contains(t, call(t, srv, "", register, `{}`).json(t)["error"], "daily registration quota")
	setClock(srv, midnight)
	require.Equal(t, http.StatusCreated, call(t, srv, "", register, `{}`).status)
}

func TestAddressLimitResets(t *testing.T) {
	srv := registering(t, agentjobtest.Settings{IPDailyLimit: 1})
	midnight := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	setClock(srv, midnight.Add(-time.Second))
	require.Equal(t, http.StatusCreated, call(t, srv, "", register, `{}`).status)
	require.Equal(t, http.StatusTooManyRequests, call(t, srv, "", register, `{}`).status)
	setClock(srv, midnight)
	require.Equal(t, http.StatusCreated, call(t, srv, "", register, `{}`).status)
}

func TestBlockedLimits(t *testing.T) {
	for word, settings := range map[string]agentjobtest.Settings{
		"IP address": {IPDailyLimit: agentjobtest.Blocked},
		"quota":      {DailyLimit: agentjobtest.Blocked},
	} {
		srv := registering(t, settings)
		refused := call(t, srv, "", register, `{}`)
		require.Equal(t, http.StatusTooManyRequests, refused.status)
		require.Contains(t, refused.body, word)
	}
}

func TestFailedRegistrationsUseUpTheQuota(t *testing.T) {
	srv := registering(t, agentjobtest.Settings{IPDailyLimit: 100, DailyLimit: 2, RegistrationFails: true})
	const body = `{"idempotencyKey":"k1"}`
	for range 2 {
		require.Equal(t, http.StatusInternalServerError, call(t, srv, "", register, body).status)
	}
	srv.Configure(func(s *agentjobtest.Settings) { s.RegistrationFails = false })
	require.Equal(t, http.StatusTooManyRequests, call(t, srv, "", register, body).status)
}

func TestRegistrationFields(t *testing.T) {
	srv := registering(t, agentjobtest.Settings{IPDailyLimit: 100})
	for body, status := range map[string]int{
		`{}`: http.StatusCreated,
		`{"agentName":"` + strings.Repeat("ä", 100) + `","idempotencyKey":"` + strings.Repeat("k", 88) + `"}`: http.StatusCreated,
		`{"agentName":""}`:                                     http.StatusBadRequest,
		`{"idempotencyKey":""}`:                                http.StatusBadRequest,
		`{"agentName":"` + strings.Repeat("n", 101) + `"}`:     http.StatusBadRequest,
		`{"idempotencyKey":"` + strings.Repeat("k", 89) + `"}`: http.StatusBadRequest,
		`{"agentName":1}`:                                      http.StatusBadRequest,
		`not JSON`:                                             http.StatusBadRequest,
	} {
		require.Equal(t, status, call(t, srv, "", register, body).status, "%.40s", body)
	}
}

func TestIdempotencyKeysLiveOneDay(t *testing.T) {
	srv := registering(t, agentjobtest.Settings{IPDailyLimit: 100})
	start := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	agentAt := func(now time.Time) any {
		setClock(srv, now)
		return call(t, srv, "", register, `{"idempotencyKey":"k1"}`).json(t)["data"].(map[string]any)["agentId"]
	}
	first := agentAt(start)
	require.Equal(t, first, agentAt(start.Add(24*time.Hour-time.Second)))
	require.NotEqual(t, first, agentAt(start.Add(24*time.Hour)))
}
