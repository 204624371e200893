package agentjob

import (
	"context"
	"encoding/json"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

// A Response is a reply as it is sent.
type Response struct {
	Text          string   // at most [MaxReplyUnits]; blank only beside AttachmentIDs
	AttachmentIDs []string // files uploaded for this task
}

// A Receipt says that the platform has the reply.
type Receipt struct {
	StatusCode int
	Raw        json.RawMessage // the whole answer; nil if it is no JSON
}

// Respond delivers the reply to a claimed task. The same response again succeeds
// without a second message or charge, so Respond retries by itself and may be
// repeated by the caller. [ErrConflict] means that it came too late or the task was
// cancelled.
func (c *Client) Respond(ctx context.Context, taskID string, r Response) (*Receipt, error) {
	body, err := r.encode()
	if err != nil {
		return nil, err
	}
	return c.respondBytes(ctx, taskID, body)
}

// encode returns the valid response's bytes.
func (r Response) encode() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	return r.marshal(), nil
}

func (r Response) marshal() []byte {
	body, err := json.Marshal(responseJSON(r))
	if err != nil {
		panic("agentjob: strings can't be encoded: " + err.Error()) // can't happen
	}
	return body
}

type responseJSON struct {
	Text          string   `json:"text"`
	AttachmentIDs []string `json:"attachmentIds,omitempty"`
}

// replyText finds the chat text in what encode returned.
func replyText(body []byte) string {
	var sent responseJSON
	if err := json.Unmarshal(body, &sent); err != nil {
		return string(body)
	}
	return sent.Text
}

// respondBytes sends what encode returned.
func (c *Client) respondBytes(ctx context.Context, taskID string, body []byte) (*Receipt, error) {
	if err := checkTaskID(taskID); err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, invalid("body", "is not what encode made") // it might hold chat text
	}
	return ask(ctx, c, inquiry{op: opRespond, method: "POST", path: taskPath(taskID, "response"), taskID: taskID, body: body, reply: true},
		func(a *httpx.Answer) (*Receipt, error) {
			raw, err := decodeReceipt(a, taskID)
			if err != nil {
				return nil, err
			}
			return &Receipt{StatusCode: a.Status, Raw: raw}, nil
		})
}
