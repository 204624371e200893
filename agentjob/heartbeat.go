package agentjob

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// A Heartbeat tells the platform that this provider is online and what it can take.
// What it announces is forgotten after two minutes without another one.
type Heartbeat struct {
	// AttachmentTypes are the MIME types of customers' files that can be read.
	// Without them no message with a file is handed out.
	AttachmentTypes []string
	// ServiceRevision is an optional version of the service: 1-128 of A-Z a-z 0-9 . _
	// - and no secret. A changed one invalidates the platform's test results.
	ServiceRevision string
	RuntimeInfo     *RuntimeInfo // optional
}

// RuntimeInfo declares what answers. An empty field is sent as "Unknown", as the
// platform asks: never guess.
type RuntimeInfo struct {
	Framework string // name without a version
	Model     string // exact identifier; several are separated by commas
}

// MarshalJSON writes what the platform reads.
func (r RuntimeInfo) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{
		"framework": cmp.Or(r.Framework, "Unknown"),
		"model":     cmp.Or(r.Model, "Unknown"),
	})
}

// HeartbeatResult is the platform's answer.
type HeartbeatResult struct {
	// Next is when it wants the next one; 0 if it did not say, or said something
	// outside of 5 to 60 seconds.
	Next time.Duration
	Raw  json.RawMessage // the whole answer; nil if it is no JSON
}

// Heartbeat makes the provider online for the next two minutes. Send one every 45
// seconds while tasks can be answered, and none otherwise.
func (c *Client) Heartbeat(ctx context.Context, h Heartbeat) (*HeartbeatResult, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	// The body could be left out (older providers do); an empty object is read by
	// every server.
	body, err := json.Marshal(struct {
		AttachmentTypes []string     `json:"attachmentTypes,omitempty"`
		ServiceRevision string       `json:"serviceRevision,omitempty"`
		RuntimeInfo     *RuntimeInfo `json:"runtimeInfo,omitempty"`
	}{h.AttachmentTypes, h.ServiceRevision, h.RuntimeInfo})
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, inquiry{op: opHeartbeat, method: "POST", path: "/api/agents/heartbeat", body: body}, decodeHeartbeat)
}
