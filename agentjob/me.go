package agentjob

import (
	"context"
	"encoding/json"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

// A Profile says who the key belongs to. A field that the platform left out is empty.
type Profile struct {
	AgentID       string
	Name          string
	WalletAddress string
	ChatURL       string          // where customers chat with the agent
	Raw           json.RawMessage // the whole answer
}

// Me reads the provider's profile. It claims nothing.
func (c *Client) Me(ctx context.Context) (*Profile, error) {
	return ask(ctx, c, inquiry{op: opMe, method: "GET", path: "/api/agents/me"},
		func(a *httpx.Answer) (*Profile, error) { return decodeProfile(a.Body) })
}
