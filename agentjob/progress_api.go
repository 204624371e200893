package agentjob

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

// ProgressStatus is how the platform calls a task's state. Only some names are
// public; an unknown one, and none, means that the task is open.
type ProgressStatus string

// Over reports whether no reply is wanted any more: cancelled or failed.
func (s ProgressStatus) Over() bool { return statusOver[s.folded()] }

// Completed reports whether a reply was accepted.
func (s ProgressStatus) Completed() bool { return statusCompleted[s.folded()] }

// TaskProgress is what the platform knows of a claimed task.
type TaskProgress struct {
	Status ProgressStatus

	// Deadline is by the platform's clock; the zero time means not known.
	Deadline time.Time
	// Remaining is Deadline minus the answer's Date: independent of clocks, exact to
	// about a second, negative after the deadline. Nil: not known.
	Remaining *time.Duration

	Limits json.RawMessage // the limits for generated files as sent; nil if absent
	Raw    json.RawMessage // the whole answer
}

// Progress reads a claimed task's status and deadline. Asking every five seconds is
// how a provider learns that the customer has cancelled.
func (c *Client) Progress(ctx context.Context, taskID string) (*TaskProgress, error) {
	if err := checkTaskID(taskID); err != nil {
		return nil, err
	}
	return ask(ctx, c, inquiry{op: opProgress, method: "GET", path: taskPath(taskID, "progress"), taskID: taskID, silent: true},
		func(a *httpx.Answer) (*TaskProgress, error) {
			p, err := decodeProgress(a.Body, taskID)
			if err != nil {
				return nil, err
			}
			if now, ok := platformTime(a); ok && !p.Deadline.IsZero() {
				p.Remaining = new(p.Deadline.Sub(now))
			}
			return p, nil
		})
}

// A ProgressReport is what the customer sees of the work.
type ProgressReport struct {
	Seq     int64  // 1 or more, growing; the platform ignores old numbers
	Message string // short and fit for the customer
	Percent *int   // 0 to 100; nil: not known
}

// ReportProgress shows the customer how far the work is: at most every three seconds.
// It does not extend the deadline and is never sent again on its own.
func (c *Client) ReportProgress(ctx context.Context, taskID string, p ProgressReport) error {
	if err := checkTaskID(taskID); err != nil {
		return err
	}
	if err := p.validate(); err != nil {
		return err
	}
	body, err := json.Marshal(struct {
		Seq     int64  `json:"seq"`
		Message string `json:"message"`
		Percent *int   `json:"percent,omitempty"`
	}{p.Seq, p.Message, p.Percent})
	if err != nil {
		return err
	}
	_, err = ask(ctx, c, inquiry{op: opReport, method: "POST", path: taskPath(taskID, "progress"), taskID: taskID, body: body, chat: p.Message},
		func(a *httpx.Answer) (json.RawMessage, error) { return decodeReceipt(a, taskID) })
	return err
}

// taskPath is a route of one task. The id is one segment, whatever it consists of.
func taskPath(taskID, route string) string {
	return "/api/agents/tasks/" + url.PathEscape(taskID) + "/" + route
}
