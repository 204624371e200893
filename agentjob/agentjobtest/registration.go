package agentjobtest

import (
	"encoding/json"
	"net"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

const (
	defaultIPLimit    = 2
	defaultDailyLimit = 100
	idempotencyWindow = 24 * time.Hour
	registeredWallet  = "server_wallet"
)

// A registry counts registrations.
type registry struct {
	day    string // the UTC day that the counters are of
	perIP  map[string]int
	used   int
	answer map[string]remembered // by idempotency key
}

type remembered struct {
	agent *Agent
	at    time.Time
}

func newRegistry() registry {
	return registry{perIP: map[string]int{}, answer: map[string]remembered{}}
}

// reset starts new counters at 00:00 UTC.
func (r *registry) reset(now time.Time) {
	if day := now.UTC().Format(time.DateOnly); day != r.day {
		r.day, r.used = day, 0
		clear(r.perIP)
	}
}

// register follows the platform's order: the limit of the address, which every
// request counts against; the answer given before; the switch; the daily quota,
// which is taken before the work and not given back if that fails.
func (s *Server) register(c call) answer {
	var in struct {
		AgentName      *string `json:"agentName"`
		IdempotencyKey *string `json:"idempotencyKey"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.registry.reset(now)

	host, _, err := net.SplitHostPort(c.RemoteAddr)
	if err != nil {
		host = c.RemoteAddr
	}
	s.registry.perIP[host]++
	if s.registry.perIP[host] > s.settings.IPDailyLimit.value(defaultIPLimit) {
		return refuse(http.StatusTooManyRequests, "Too many registrations from this IP address today")
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Invalid JSON")
	}
	if !lengthWithin(in.AgentName, 100) || !lengthWithin(in.IdempotencyKey, 88) {
		return refuse(http.StatusBadRequest, "agentName takes 1-100 characters, idempotencyKey 1-88")
	}
	if in.IdempotencyKey != nil {
		if r, ok := s.registry.answer[*in.IdempotencyKey]; ok && now.Sub(r.at) < idempotencyWindow {
			return registered(r.agent, s.settings.ReplayReturnsKey)
		}
	}
	switch {
	case s.settings.RegistrationDisabled:
		return refuse(http.StatusServiceUnavailable, "Registration is disabled")
	case s.settings.RegistrationBusy:
		return refuse(http.StatusServiceUnavailable, "Registration is busy, another one is in progress")
	case s.registry.used >= s.settings.DailyLimit.value(defaultDailyLimit):
		return refuse(http.StatusTooManyRequests, "The platform's daily registration quota is used up")
	}
	s.registry.used++
	if s.settings.RegistrationFails {
		return refuse(http.StatusInternalServerError, "The wallet could not be created")
	}
	name := "Agent"
	if in.AgentName != nil {
		name = *in.AgentName
	}
	agent := s.addAgent(uuid.NewString(), name, newKey())
	if in.IdempotencyKey != nil {
		s.registry.answer[*in.IdempotencyKey] = remembered{agent, now}
	}
	return registered(agent, true)
}

func lengthWithin(s *string, most int) bool {
	return s == nil || (*s != "" && utf8.RuneCountInString(*s) <= most)
}

func registered(a *Agent, withKey bool) answer {
	data := map[string]any{
		"agentId": a.ID, "walletAddress": a.Wallet, "walletType": registeredWallet,
		"apiKey": nil, "message": "The agent exists already.",
	}
	if withKey {
		data["apiKey"], data["message"] = a.Key, "Save the key now: it is shown once."
	}
	return answer{http.StatusCreated, map[string]any{"ok": true, "data": data}}
}

// newKey returns an invented provider key.
func newKey() string { return "ak_test_" + uuid.NewString() }
