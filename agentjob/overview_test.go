package agentjob

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/wallet/usdc"
)

func TestOverviewReadsEveryShape(t *testing.T) {
	monday := time.Date(2026, 11, 9, 0, 0, 0, 0, time.UTC)
	want := Overview{
		WalletAddress: "0x01", Balance: new(usdc.Amount(1_230_000)), InquiringAccounts: new(int64(3)), Conversations: new(int64(4)),
		ReceiptsThisWeek: new(usdc.Amount(20_000)), ReceiptCount: new(int64(2)), WeekStart: monday,
	}
	for _, payload := range []string{
		`{"walletAddress":"0x01","usdcBalance":"1.23","inquiringAccounts":3,"conversations":4,"receiptsThisWeek":"0.02","receiptCount":2,"weekStart":"2026-11-09T00:00:00.000Z"}`,
		`{"wallet_address":"0x01","wallet_balance":{"usdc":"1.2","usdc_raw":"1230000"},"inquiring_accounts":"3","conversations_with_messages":4,"weekly_receipts":0.02,"receipts_count":2,"week_start":"2026-11-09T00:00:00Z"}`,
		`{"overview":{"wallet":{},"walletAddress":"0x01","balance":1.23,"distinctInquiringAccounts":3,"conversations":{"count":4},"receipts":{"amount":"0.020000","count":2,"weekStart":"2026-11-09T00:00:00Z"}}}`,
		`{"wallet":{"address":"0x01","balance":{"amount":"1.23"}},"stats":{"accounts":3,"conversationCount":4},"week":{"receipts":{"total":0.02,"count":"2"},"weekStart":1794182400}}`,
	} {
		for _, body := range wrapped(payload) {
			o, err := answering(t, 200, jsonType, body).Overview(t.Context())
			require.NoError(t, err, body)
			assert.JSONEq(t, body, string(o.Raw))
			o.Raw = nil
			assert.Equal(t, &want, o, body)
		}
	}
}

func TestWhatAnOverviewLeavesOutIsNotZero(t *testing.T) {
	for _, payload := range []string{
		`{}`,
		`{"usdcBalance":null,"inquiringAccounts":null,"receipts":null}`,
		`{"usdcBalance":"unavailable","conversations":-1,"receipts":7,"weekStart":"monday"}`, // 7 could be a count or an amount
		`{"balance":{"available":false}}`,
	} {
		o, err := answering(t, 200, jsonType, payload).Overview(t.Context())
		require.NoError(t, err, payload)
		assert.Equal(t, &Overview{Raw: o.Raw}, o, payload)
	}
	o, err := answering(t, 200, jsonType, `{"usdcBalance":0,"inquiringAccounts":0}`).Overview(t.Context())
	require.NoError(t, err)
	assert.Equal(t, usdc.Amount(0), *o.Balance, "told to be none")
	assert.Zero(t, *o.InquiringAccounts)
	for _, body := range []string{``, `null`, `[]`, `"x"`, `{`} {
		_, err := answering(t, 200, jsonType, body).Overview(t.Context())
		assert.ErrorIs(t, err, ErrMalformedResponse, body)
	}
}
