package agentjob

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsWrongIsNamedAndNotSent(t *testing.T) {
	long := strings.Repeat("x", 513)
	beat := func(h Heartbeat) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.Heartbeat(ctx, h); return err }
	}
	poll := func(p Poll) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.PollTask(ctx, p); return err }
	}
	report := func(id string, p ProgressReport) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { return c.ReportProgress(ctx, id, p) }
	}
	respond := func(id string, r Response) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.Respond(ctx, id, r); return err }
	}
	register := func(o RegisterOptions) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.Register(ctx, o); return err }
	}
	for i, c := range []struct {
		field string
		call  func(context.Context, *Client) error
	}{
		{"AttachmentTypes", beat(Heartbeat{AttachmentTypes: []string{"image/png,text/csv"}})},
		{"AttachmentTypes", beat(Heartbeat{AttachmentTypes: []string{"image/png", "png"}})},
		{"AttachmentTypes", poll(Poll{AttachmentTypes: []string{"image/png\r\nX-Evil: 1"}})},
		{"AttachmentTypes", poll(Poll{AttachmentTypes: []string{""}})},
		{"ServiceRevision", beat(Heartbeat{ServiceRevision: "v 1"})},
		{"ServiceRevision", beat(Heartbeat{ServiceRevision: strings.Repeat("x", 129)})},
		{"ServiceRevision", beat(Heartbeat{ServiceRevision: "v1\n"})},
		{"RuntimeInfo.Framework", beat(Heartbeat{RuntimeInfo: &RuntimeInfo{Framework: "\xff"}})},
		{"RuntimeInfo.Model", beat(Heartbeat{RuntimeInfo: &RuntimeInfo{Model: "\xff"}})},
		{"Wait", poll(Poll{Wait: time.Second - 1})},
		{"Wait", poll(Poll{Wait: time.Minute + 1})},
		{"Wait", poll(Poll{Wait: -1})},
		{"Seq", report("t", ProgressReport{})},
		{"Percent", report("t", ProgressReport{Seq: 1, Percent: new(-1)})},
		{"Percent", report("t", ProgressReport{Seq: 1, Percent: new(101)})},
		{"Message", report("t", ProgressReport{Seq: 1, Message: "\xff"})},
		{"taskID", report("..", ProgressReport{Seq: 1})},
		{"taskID", respond("", Response{Text: "Hi"})},
		{"taskID", respond(".", Response{Text: "Hi"})},
		{"taskID", respond(long, Response{Text: "Hi"})},
		{"taskID", func(ctx context.Context, c *Client) error { _, err := c.Progress(ctx, ".."); return err }},
		{"Text", respond("t", Response{Text: " \n\u00a0"})},
		{"Text", respond("t", Response{Text: "\xff"})},
		{"Text", respond("t", Response{Text: strings.Repeat("x", MaxReplyUnits+1)})},
		{"AttachmentIDs", respond("t", Response{Text: "Hi", AttachmentIDs: []string{"f", " "}})},
		{"File", register(RegisterOptions{})},
		{"AgentName", register(RegisterOptions{File: "x", AgentName: strings.Repeat("ä", 101)})},
		{"AgentName", register(RegisterOptions{File: "x", AgentName: "  "})},
		{"AgentName", register(RegisterOptions{File: "x", AgentName: "\xff"})},
	} {
		client, requests := recording(t)
		err := c.call(t.Context(), client)
		v, ok := errors.AsType[*ValidationError](err)
		require.True(t, ok, "%d: %v", i, err)
		assert.Equal(t, c.field, v.Field, i)
		assert.Empty(t, *requests, i)
		assert.Less(t, len(err.Error()), 300, "the value is not in it")
	}
}

func TestALongReplyIsCountedAsThePlatformMay(t *testing.T) {
	for text, ok := range map[string]bool{
		strings.Repeat("x", MaxReplyUnits):          true,
		strings.Repeat("ä", MaxReplyUnits):          true, // 2 bytes, 1 unit
		strings.Repeat("😀", MaxReplyUnits/2):        true, // 1 character, 2 units
		strings.Repeat("😀", MaxReplyUnits/2) + "x":  false,
		strings.Repeat("x", MaxReplyUnits-1) + "😀":  false,
		strings.Repeat(" ", MaxReplyUnits-1) + "x":  true,
		strings.Repeat(" ", MaxReplyUnits) + "more": false,
	} {
		_, err := Response{Text: text}.encode()
		if ok {
			assert.NoError(t, err)
			continue
		}
		assert.ErrorIs(t, err, ErrReplyTooLong)
		v, is := errors.AsType[*ValidationError](err)
		require.True(t, is)
		assert.Equal(t, "Text", v.Field)
	}
}

func TestTheLimitsThemselvesAreAllowed(t *testing.T) {
	assert.NoError(t, Poll{Wait: time.Second}.validate())
	assert.NoError(t, Poll{Wait: time.Minute}.validate())
	assert.NoError(t, Heartbeat{ServiceRevision: strings.Repeat("x", 128), AttachmentTypes: []string{"application/vnd.a-b.c+json", "image/*"}}.validate())
	assert.NoError(t, ProgressReport{Seq: 1, Percent: new(0)}.validate())
	assert.NoError(t, ProgressReport{Seq: 1 << 62, Percent: new(100)}.validate())
	assert.NoError(t, checkAgentName(strings.Repeat("ä", 100)))
	assert.NoError(t, checkTaskID(strings.Repeat("x", 512)))
}
