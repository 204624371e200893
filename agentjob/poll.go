package agentjob

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

// A Poll asks for a task.
type Poll struct {
	// Wait is how long the platform may hold the request while there is no task: 1 to
	// 60 seconds, of which whole ones count; 0 means 25 seconds.
	Wait            time.Duration
	AttachmentTypes []string // as in the heartbeat
}

const attachmentTypesHeader = "X-Agentjob-Attachment-Types"

// PollTask claims the next task. It returns nil and no error if there is none.
//
// A returned task is claimed: nobody else gets it, and without a reply it runs out.
// So poll only when it can be answered now, and note it durably first; a [Worker]
// does both. PollTask is never sent again on its own. If ctx ends while it waits, a
// task that was handed out at that moment is lost to its deadline.
//
// Task.Deadline, if the platform sends one, is translated to this machine's clock by
// the answer's Date header.
func (c *Client) PollTask(ctx context.Context, p Poll) (*Task, error) {
	if p.Wait == 0 {
		p.Wait = defaultPollWait
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	in := inquiry{
		op: opPoll, method: "GET", path: "/api/agents/tasks",
		query:  "wait=" + strconv.Itoa(int(p.Wait/time.Second)),
		silent: true,
	}
	in.op.policy.Attempt += p.Wait
	in.op.policy.Total += p.Wait
	if len(p.AttachmentTypes) > 0 {
		in.header = http.Header{attachmentTypesHeader: {strings.Join(p.AttachmentTypes, ",")}}
	}
	return ask(ctx, c, in, func(a *httpx.Answer) (*Task, error) {
		task, err := decodePoll(a.Body)
		if task != nil && !task.Deadline.IsZero() {
			if now, ok := platformTime(a); ok {
				task.Deadline = a.At.Add(task.Deadline.Sub(now))
			}
		}
		return task, err
	})
}

// platformTime is the platform's clock when it answered.
func platformTime(a *httpx.Answer) (time.Time, bool) {
	date, err := http.ParseTime(a.Header.Get("Date"))
	return date, err == nil
}
