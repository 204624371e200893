package agentjob

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
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
	reserve := func(id string, r FileReservation) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.ReserveFile(ctx, id, r); return err }
	}
	withdraw := func(r WithdrawalRequest) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.CreateWithdrawal(ctx, r); return err }
	}
	open := func(a Attachment, l AttachmentLimits) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.OpenAttachment(ctx, a, l); return err }
	}
	for i, c := range []struct {
		field string
		call  func(context.Context, *Client) error
	}{
		{"taskID", reserve("..", FileReservation{ID: someFile, Name: "a.png", Size: 1})},
		{"ID", reserve("t", FileReservation{ID: "f-1", Name: "a.png", Size: 1})},
		{"ID", reserve("t", FileReservation{ID: someFile + "\n", Name: "a.png", Size: 1})},
		{"Name", reserve("t", FileReservation{ID: someFile, Name: "", Size: 1})},
		{"Name", reserve("t", FileReservation{ID: someFile, Name: " . ", Size: 1})},
		{"Name", reserve("t", FileReservation{ID: someFile, Name: "../a.png", Size: 1})},
		{"Name", reserve("t", FileReservation{ID: someFile, Name: `c:\a.png`, Size: 1})},
		{"Name", reserve("t", FileReservation{ID: someFile, Name: "a\n.png", Size: 1})},
		{"Name", reserve("t", FileReservation{ID: someFile, Name: "\xff.png", Size: 1})},
		{"Name", reserve("t", FileReservation{ID: someFile, Name: long, Size: 1})},
		{"Size", reserve("t", FileReservation{ID: someFile, Name: "a.png"})},
		{"taskID", func(ctx context.Context, c *Client) error { _, err := c.FinalizeFile(ctx, "", someFile); return err }},
		{"fileID", func(ctx context.Context, c *Client) error { _, err := c.FinalizeFile(ctx, "t", ""); return err }},
		{"IdempotencyKey", withdraw(WithdrawalRequest{IdempotencyKey: "1234567", ToAddress: someAddress, Amount: 1})},
		{"IdempotencyKey", withdraw(WithdrawalRequest{IdempotencyKey: strings.Repeat("k", 89), ToAddress: someAddress, Amount: 1})},
		{"IdempotencyKey", withdraw(WithdrawalRequest{IdempotencyKey: "12345678 9", ToAddress: someAddress, Amount: 1})},
		{"ToAddress", withdraw(WithdrawalRequest{IdempotencyKey: "12345678", ToAddress: someAddress[2:], Amount: 1})},
		{"ToAddress", withdraw(WithdrawalRequest{IdempotencyKey: "12345678", ToAddress: someAddress + "0", Amount: 1})},
		{"ToAddress", withdraw(WithdrawalRequest{IdempotencyKey: "12345678", ToAddress: "0x" + strings.Repeat("0", 40), Amount: 1})},
		{"Amount", withdraw(WithdrawalRequest{IdempotencyKey: "12345678", ToAddress: someAddress})},
		{"id", func(ctx context.Context, c *Client) error { _, err := c.Withdrawal(ctx, ".."); return err }},
		{"URL", open(Attachment{}, AttachmentLimits{})},
		{"URL", open(Attachment{URL: "http://h/f"}, AttachmentLimits{})},
		{"URL", open(Attachment{URL: "https://me:pw@h/f"}, AttachmentLimits{})},
		{"URL", open(Attachment{URL: "file:///etc/passwd"}, AttachmentLimits{})},
		{"URL", open(Attachment{URL: "/relative"}, AttachmentLimits{})},
		{"MaxBytes", open(Attachment{URL: "https://h/f"}, AttachmentLimits{MaxBytes: -1})},
		{"Types", open(Attachment{URL: "https://h/f"}, AttachmentLimits{Types: []string{"png"}})},
		{"Size", open(Attachment{URL: "https://h/f", Size: new(int64(11))}, AttachmentLimits{MaxBytes: 10})},
		{"ContentType", open(Attachment{URL: "https://h/f", ContentType: "text/html"}, AttachmentLimits{Types: []string{"image/png"}})},
		{"Cookie", func(ctx context.Context, c *Client) error {
			_, err := c.RegistrationQuota(ctx, AdminSession{})
			return err
		}},
		{"Cookie", func(ctx context.Context, c *Client) error {
			_, err := c.RegistrationQuota(ctx, AdminSession{secret.New("session=x\r\nEvil: 1")})
			return err
		}},
		{"Cookie", func(ctx context.Context, c *Client) error {
			_, err := c.RegistrationQuota(ctx, AdminSession{secret.New("session=ak_EXAMPLE_KEY")})
			return err
		}},
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
