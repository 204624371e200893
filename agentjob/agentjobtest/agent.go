package agentjobtest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	onlineWindow  = 2 * time.Minute
	freeDailyMax  = 5
	price         = "0.01"
	priceAsNumber = 0.01
	pricePart     = 100 // so many messages earn 1 USDC
)

// An Agent is a provider as the platform knows it. Its fields are constant.
type Agent struct {
	ID     string
	Name   string
	Key    string // the provider key
	Wallet string

	srv *Server
	// The rest is guarded by srv.mu.
	beat        time.Time
	types       []string // MIME types it reads, of the last heartbeat
	revision    string
	runtimeInfo json.RawMessage
	beats       int
	freeDay     string
	freeUsed    int
	created     time.Time
	chats       int     // customers' conversations with a message
	replies     int     // messages delivered
	receipts    int     // of them, those paid for
	live        []*task // queued, processing or to be handed out again, oldest first
	bell        bell    // rings when a poll may find something new
}

// AddAgent makes an agent without the registration's limits.
func (s *Server) AddAgent(name string) *Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAgent(uuid.NewString(), name, newKey())
}

func (s *Server) addAgent(id, name, key string) *Agent {
	a := &Agent{ID: id, Name: name, Key: key, Wallet: "0x" + strings.Repeat("0", 8) + strings.ReplaceAll(id, "-", ""), created: s.now(), srv: s}
	s.agents[a.ID], s.keys[a.Key] = a, a
	return a
}

// Agent returns the agent with an id, as a registration returned it, or nil.
func (s *Server) Agent(id string) *Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agents[id]
}

// Revoke makes a provider key invalid, as a reset in the dashboard does.
func (s *Server) Revoke(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
}

// Online reports whether the last heartbeat is under two minutes old.
func (a *Agent) Online() bool {
	a.srv.mu.Lock()
	defer a.srv.mu.Unlock()
	return a.online()
}

// Beats returns the number of heartbeats.
func (a *Agent) Beats() int {
	a.srv.mu.Lock()
	defer a.srv.mu.Unlock()
	return a.beats
}

// AttachmentTypes returns the MIME types announced by the last heartbeat, nil for none.
func (a *Agent) AttachmentTypes() []string {
	a.srv.mu.Lock()
	defer a.srv.mu.Unlock()
	return slices.Clone(a.types)
}

// Revision returns the service revision announced last, "" for none.
func (a *Agent) Revision() string {
	a.srv.mu.Lock()
	defer a.srv.mu.Unlock()
	return a.revision
}

func (a *Agent) online() bool {
	return a.beats > 0 && a.srv.now().Sub(a.beat) < onlineWindow
}

// me shows the profile in the form that public programs have recorded from the platform's
// MCP tool of the same purpose, and the chat URL that the guide speaks of.
func (s *Server) me(c call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := c.agent
	status, last := "offline", any(nil)
	if a.online() {
		status = "online"
	}
	if a.beats > 0 {
		last = stamp(a.beat)
	}
	return answer{http.StatusOK, s.shape(map[string]any{
		"agent_id": a.ID, "name": a.Name, "bio": nil, "chat_url": s.URL + "/chat/" + a.ID,
		"wallet_address": a.Wallet, "wallet_balance": map[string]any{"usdc": "0.00", "usdc_raw": "0"},
		"registration_type":    "wallet (api)",
		"pricing":              map[string]any{"per_message_usdc": priceAsNumber, "free_daily_slots": freeDailyMax, "daily_reply_limit": 500},
		"max_concurrent_chats": s.settings.MaxConcurrentChats,
		"tags":                 map[string]any{"agent_type": nil, "model": nil, "skills": []string{}, "frameworks": []string{}, "runtimes": []string{}},
		"status":               map[string]any{"online": status == "online", "online_status": status, "last_heartbeat": last},
		"stats": map[string]any{
			"total_hired": a.replies, "total_chats": a.chats, "success_rate": 1,
			"total_revenue_usdc": float64(a.receipts) / pricePart,
		},
		"is_active": true, "created_at": stamp(a.created),
	}, Bare)}
}

var revisionPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

func (s *Server) heartbeat(c call) answer {
	var in struct {
		AttachmentTypes []string        `json:"attachmentTypes"`
		ServiceRevision *string         `json:"serviceRevision"`
		RuntimeInfo     json.RawMessage `json:"runtimeInfo"`
	}
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &in); err != nil {
			return refuse(http.StatusBadRequest, "Invalid JSON")
		}
	}
	if in.ServiceRevision != nil && !revisionPattern.MatchString(*in.ServiceRevision) {
		return refuse(http.StatusBadRequest, "serviceRevision takes 1-128 letters, digits, dots, underscores or hyphens")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := c.agent
	a.beat, a.beats, a.types = s.now(), a.beats+1, in.AttachmentTypes
	if in.ServiceRevision != nil {
		a.revision = *in.ServiceRevision
	}
	if in.RuntimeInfo != nil {
		a.runtimeInfo = in.RuntimeInfo
	}
	return answer{http.StatusOK, s.shape(map[string]any{"next_heartbeat_in_seconds": int(s.settings.HeartbeatInterval / time.Second)}, Data)}
}

// RuntimeInfo returns the runtimeInfo announced last as JSON, nil for none.
func (a *Agent) RuntimeInfo() json.RawMessage {
	a.srv.mu.Lock()
	defer a.srv.mu.Unlock()
	return slices.Clone(a.runtimeInfo)
}

// charge takes one of the agent's free messages of the day, or a payment. s.mu is held.
func (a *Agent) charge() (free bool) {
	if day := a.srv.now().UTC().Format(time.DateOnly); day != a.freeDay {
		a.freeDay, a.freeUsed = day, 0
	}
	if a.freeUsed < freeDailyMax {
		a.freeUsed++
		return true
	}
	return false
}
