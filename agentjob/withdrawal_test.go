package agentjob

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/wallet/usdc"
)

var someWithdrawal = WithdrawalRequest{IdempotencyKey: "PRIVATE-KEY-1", ToAddress: someAddress, Amount: 1000}

func TestWithdrawalsReadEveryShape(t *testing.T) {
	at := time.Date(2026, 11, 9, 10, 20, 30, 0, time.UTC)
	want := Withdrawal{ID: "w-1", Status: "confirmed", Amount: new(usdc.Amount(1000)), ToAddress: someAddress, FromAddress: "0x02", TxHash: "0xab", CreatedAt: at, UpdatedAt: at}
	for _, payload := range []string{
		`{"id":"w-1","status":"confirmed","amount":"0.001","toAddress":"` + someAddress + `","fromAddress":"0x02","txHash":"0xab","createdAt":"2026-11-09T10:20:30Z","updatedAt":"2026-11-09T10:20:30.000Z"}`,
		`{"withdrawal_id":"w-1","state":"confirmed","amount_usdc":0.001,"to":"` + someAddress + `","from":"0x02","transaction_hash":"0xab","created_at":1794219630,"updated_at":"1794219630000"}`,
		`{"withdrawal":{"withdrawalId":"w-1","status":"confirmed","amountUsdc":"0.001000","to_address":"` + someAddress + `","from_address":"0x02","transactionHash":"0xab","createdAt":1794219630,"updatedAt":1794219630}}`,
	} {
		for _, body := range wrapped(payload) {
			for _, read := range []func(*Client) (*Withdrawal, error){
				func(c *Client) (*Withdrawal, error) { return c.Withdrawal(t.Context(), "w-1") },
				func(c *Client) (*Withdrawal, error) { return c.CreateWithdrawal(t.Context(), someWithdrawal) },
			} {
				w, err := read(answering(t, 200, jsonType, body))
				require.NoError(t, err, body)
				assert.JSONEq(t, body, string(w.Raw))
				w.Raw = nil
				assert.Equal(t, &want, w, body)
			}
		}
	}
}

func TestAFailedWithdrawalIsReadAsOne(t *testing.T) {
	for _, body := range []string{
		`{"id":"w-1","status":"failed","error":"insufficient\nfunds"}`, `{"ok":true,"data":{"id":"w-1","state":"failed","failureReason":"insufficient funds"}}`,
		`{"withdrawal":{"id":"w-1","status":"failed","reason":"insufficient funds"}}`,
	} {
		w, err := answering(t, 200, jsonType, body).Withdrawal(t.Context(), "w-1")
		require.NoError(t, err, body)
		assert.True(t, w.Status.Failed())
		assert.Equal(t, "insufficient funds", w.Reason)
	}
}

func TestUnknownStatesOfWithdrawalsPassThrough(t *testing.T) {
	for status, want := range map[WithdrawalStatus][2]bool{
		"confirmed": {true, false}, "Completed": {true, false}, "failed": {false, true}, "REVERTED": {false, true},
		"pending": {}, "submission_uncertain": {}, "": {}, "sent": {}, "not failed": {},
	} {
		w, err := answering(t, 200, jsonType, `{"id":"w-1","status":"`+string(status)+`"}`).Withdrawal(t.Context(), "w-1")
		require.NoError(t, err)
		assert.Equal(t, status, w.Status)
		assert.Equal(t, want, [2]bool{w.Status.Confirmed(), w.Status.Failed()}, status)
	}
}

func TestAnAnswerAboutAnotherWithdrawalIsNone(t *testing.T) {
	_, err := answering(t, 200, jsonType, `{"id":"w-2"}`).Withdrawal(t.Context(), "w-1")
	assert.ErrorIs(t, err, ErrMalformedResponse)
	_, err = answering(t, 200, jsonType, `{"id":"w-2","to":"0x00000000000000000000000000000000000000b2"}`).CreateWithdrawal(t.Context(), someWithdrawal)
	assert.ErrorIs(t, err, ErrMalformedResponse)
	assert.ErrorIs(t, err, ErrOutcomeUnknown)
	w, err := answering(t, 201, jsonType, `{"ok":true,"txHash":"0xab","to":"`+strings.ToLower(someAddress)+`"}`).CreateWithdrawal(t.Context(), someWithdrawal)
	require.NoError(t, err, "no id, but evidence")
	assert.Equal(t, "0xab", w.TxHash)
}

func TestAWithdrawalIsTheSameBytesAgain(t *testing.T) {
	client, requests := recording(t)
	for range 2 {
		_, err := client.CreateWithdrawal(t.Context(), someWithdrawal)
		require.ErrorIs(t, err, ErrMalformedResponse, "{} names no withdrawal")
	}
	require.Len(t, *requests, 2, "one request a call")
	assert.Equal(t, (*requests)[0], (*requests)[1])
	assert.Equal(t, sent{
		method: "POST", path: "/base/api/agents/me/withdrawals", auth: "Bearer ak_EXAMPLE_KEY", contentType: "application/json",
		body: `{"idempotencyKey":"PRIVATE-KEY-1","toAddress":"` + someAddress + `","amount":"0.001"}`,
	}, (*requests)[0])
}

func TestWhichWithdrawalsMayHaveHappened(t *testing.T) {
	for name, c := range map[string]struct {
		answer  httpmock.Responder
		unknown bool
	}{
		"cut":               {httpmock.NewErrorResponder(io.ErrUnexpectedEOF), true},
		"late":              {httpmock.NewErrorResponder(context.DeadlineExceeded), true},
		"no connection":     {httpmock.NewErrorResponder(&net.OpError{Op: "dial", Err: errors.New("refused")}), false},
		"no such host":      {httpmock.NewErrorResponder(&net.DNSError{Err: "no such host"}), false},
		"half an answer":    {reply(200, jsonType, `{"id":`), true},
		"an empty success":  {reply(200, jsonType, ``), true},
		"a success of none": {reply(201, jsonType, `{"ok":true}`), true},
		"ok false":          {reply(200, jsonType, `{"ok":false,"error":"later"}`), true},
		"redirect":          {reply(307, "", ""), true},
		"conflict":          {reply(409, jsonType, `{}`), true},
		"time-out":          {reply(408, jsonType, `{}`), true},
		"too early":         {reply(425, jsonType, `{}`), true},
		"server error":      {reply(500, jsonType, `{}`), true},
		"gateway":           {reply(502, "text/html", `<html>`), true},
		"a page's 404":      {reply(404, "text/html", `<html>`), true},
		"odd status":        {reply(499, jsonType, `{}`), true},
		"invalid":           {reply(400, jsonType, `{}`), false},
		"refused":           {reply(422, jsonType, `{}`), false},
		"key":               {reply(401, jsonType, `{}`), false},
		"forbidden":         {reply(403, jsonType, `{}`), false},
		"not found":         {reply(404, jsonType, `{}`), false},
		"too many":          {reply(429, jsonType, `{}`), false},
	} {
		client, count := mocked(t, c.answer)
		_, err := client.CreateWithdrawal(t.Context(), someWithdrawal)
		require.Error(t, err, name)
		assert.Equal(t, c.unknown, errors.Is(err, ErrOutcomeUnknown), "%s: %v", name, err)
		assert.Equal(t, c.unknown, strings.Contains(err.Error(), "same request with the same key"), name)
		assert.NotContains(t, err.Error(), "PRIVATE-KEY-1")
		assert.Equal(t, 1, count(), name)
	}
	client, _ := mocked(t, reply(409, jsonType, `{"error":"key in use: PRIVATE-KEY-1"}`))
	_, err := client.CreateWithdrawal(t.Context(), someWithdrawal)
	assert.ErrorIs(t, err, ErrWithdrawalConflict)
	assert.NotErrorIs(t, err, ErrConflict)
	assert.NotContains(t, err.Error(), "PRIVATE-KEY-1")

	c, err := NewClient(ClientConfig{HTTPClient: &http.Client{Transport: httpmock.NewMockTransport()}})
	require.NoError(t, err)
	_, err = c.CreateWithdrawal(t.Context(), someWithdrawal)
	assert.NotErrorIs(t, err, ErrOutcomeUnknown, "nothing was sent without a key")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	client, _ = mocked(t, httpmock.NewErrorResponder(context.Canceled))
	_, err = client.CreateWithdrawal(ended, someWithdrawal)
	assert.ErrorIs(t, err, ErrOutcomeUnknown, "the caller gave up, the platform may not have")
	assert.ErrorIs(t, err, context.Canceled)
}
