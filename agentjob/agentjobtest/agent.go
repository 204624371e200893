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
	live        []*task // queued, processing or to be handed out again, oldest first
	bell        bell    // rings when a poll may find something new
}

// AddAgent makes an agent without the registration's limits.
func (s *Server) AddAgent(name string) *Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAgent(name)
}

func (s *Server) addAgent(name string) *Agent {
	id := uuid.New()
	a := &Agent{ID: id.String(), Name: name, Key: newKey(), Wallet: "0x" + strings.Repeat("0", 8) + strings.ReplaceAll(id.String(), "-", ""), srv: s}
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

func (s *Server) me(c call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := "offline"
	if c.agent.online() {
		status = "online"
	}
	id, wallet, chat := "agent_id", "wallet_address", "chat_url"
	if s.settings.CamelCase {
		id, wallet, chat = "agentId", "walletAddress", "chatUrl"
	}
	profile := map[string]any{
		id: c.agent.ID, "name": c.agent.Name, wallet: c.agent.Wallet, "bio": nil,
		chat:      s.URL + "/chat/" + c.agent.ID,
		"pricing": map[string]any{"per_message_usdc": priceAsNumber, "free_daily_slots": freeDailyMax},
		"status":  map[string]any{"online": status == "online", "online_status": status},
	}
	return answer{http.StatusOK, s.shape(profile, Bare)}
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

// shape wraps a payload as the settings say; native is how the route does it. s.mu is held.
func (s *Server) shape(payload any, native Shape) any {
	shape := s.settings.Shape
	if shape == Native {
		shape = native
	}
	switch shape {
	case Data, DataTask:
		return map[string]any{"data": payload}
	case OKData:
		return map[string]any{"ok": true, "data": payload}
	}
	return payload
}
