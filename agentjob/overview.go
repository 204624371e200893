package agentjob

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentjob/agentjob-go/internal/httpx"
	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// An Overview is what the platform counts for a provider. A nil field is not known, which
// is not zero: the balance in particular can be unavailable.
//
// The receipts are the successful payment records of the week that began on Monday 00:00
// UTC, by their creation time. They are no net profit, are not adjusted for refunds, and prove no
// deposit to the wallet. The platform's guide of 2026-11-09 says what is counted, not how
// the fields are called: Raw has what was not recognised.
type Overview struct {
	WalletAddress string       // the registered wallet; "" if not told
	Balance       *usdc.Amount // USDC on Base of the registered wallet; nil: unavailable

	InquiringAccounts *int64 // distinct accounts that wrote to the agent
	Conversations     *int64 // conversations with messages

	ReceiptsThisWeek *usdc.Amount // sum of this week's receipts
	ReceiptCount     *int64       // how many they are
	WeekStart        time.Time    // when the week began; zero: not told

	Raw json.RawMessage // the whole answer
}

// Overview reads the provider's numbers. Ask on request, not with every heartbeat: the
// platform looks the balance up on the chain.
func (c *Client) Overview(ctx context.Context) (*Overview, error) {
	return ask(ctx, c, inquiry{op: opOverview, method: "GET", path: "/api/agents/me/overview"},
		func(a *httpx.Answer) (*Overview, error) { return decodeOverview(a.Body) })
}
