package agentjob

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/agentjob/agentjob-go/internal/httpx"
	"github.com/agentjob/agentjob-go/wallet/usdc"
)

var (
	// ErrOutcomeUnknown: whether the platform has taken a withdrawal on is not known. The money
	// may move or have moved. Look for it, or send the same request with the same key again;
	// a new key could pay twice.
	ErrOutcomeUnknown = errors.New("whether the withdrawal was taken on is not known: send only the same request with the same key again")
	// ErrWithdrawalConflict: the platform has another withdrawal under this idempotency key, or
	// is at work on this one (409).
	ErrWithdrawalConflict = errors.New("the idempotency key is taken by another withdrawal, or the platform is at work on it")
)

// A WithdrawalRequest sends USDC from the agent's registered wallet to an address on Base.
type WithdrawalRequest struct {
	// IdempotencyKey is random, 8 to 88 visible ASCII characters, and belongs to this payment:
	// keep it on disk, with the other fields, before the first call.
	IdempotencyKey string
	ToAddress      string      // 0x and 40 hexadecimal digits; it must take USDC on Base
	Amount         usdc.Amount // more than zero; any minimum is the platform's to say
}

// WithdrawalStatus is how the platform calls a withdrawal's state. No source names the
// states; an unknown one is neither confirmed nor failed.
type WithdrawalStatus string

// Confirmed reports a word that means that the transfer is in the chain. The evidence is the
// transfer's receipt, not this word.
func (s WithdrawalStatus) Confirmed() bool { return withdrawalConfirmed[ProgressStatus(s).folded()] }

// Failed reports a word that means that no money will move.
func (s WithdrawalStatus) Failed() bool { return withdrawalFailed[ProgressStatus(s).folded()] }

// A Withdrawal is what the platform says of one. A field that it left out is empty or nil. No
// public source shows one: Raw has what was not recognised.
type Withdrawal struct {
	ID          string
	Status      WithdrawalStatus
	Amount      *usdc.Amount
	ToAddress   string
	FromAddress string
	TxHash      string // of the transfer on Base, once there is one
	Reason      string // why it failed; in one line, at most 200 characters
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Raw         json.RawMessage // the whole answer
}

// CreateWithdrawal asks the platform to send USDC. The wallet pays for it with ETH on Base,
// what it takes the platform decides.
//
// It sends one request and never repeats it by itself: whoever keeps the intent decides. The
// same request again is the same bytes, and the platform answers it with the same
// withdrawal. An error that matches [ErrOutcomeUnknown] leaves open what happened; any other says
// that this request was refused or not sent, and nothing about an earlier one with the same key.
func (c *Client) CreateWithdrawal(ctx context.Context, r WithdrawalRequest) (*Withdrawal, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(withdrawalJSON(r))
	if err != nil {
		return nil, err
	}
	w, err := ask(ctx, c, inquiry{op: opCreateWithdrawal, method: "POST", path: "/api/agents/me/withdrawals", body: body, private: r.IdempotencyKey},
		func(a *httpx.Answer) (*Withdrawal, error) { return decodeCreatedWithdrawal(a.Body, r.ToAddress) })
	if e, ok := errors.AsType[*APIError](err); ok {
		refineWithdrawalError(e)
	}
	return w, err
}

// Withdrawal reads a withdrawal by the id that the platform gave it. [ErrNotFound] is no
// proof that nothing was sent.
func (c *Client) Withdrawal(ctx context.Context, id string) (*Withdrawal, error) {
	if !usableTaskID(id) {
		return nil, invalid("id", `is empty, "." or "..", or longer than %d bytes: no withdrawal is called so`, maxTaskID)
	}
	return ask(ctx, c, inquiry{op: opWithdrawal, method: "GET", path: "/api/agents/me/withdrawals/" + url.PathEscape(id)},
		func(a *httpx.Answer) (*Withdrawal, error) { return decodeWithdrawal(a.Body, id) })
}

// refusesWithdrawal has the statuses that the platform gives before it has done anything.
var refusesWithdrawal = map[int]bool{
	http.StatusBadRequest:            true,
	http.StatusUnauthorized:          true,
	http.StatusPaymentRequired:       true,
	http.StatusForbidden:             true,
	http.StatusNotFound:              true,
	http.StatusMethodNotAllowed:      true,
	http.StatusRequestEntityTooLarge: true,
	http.StatusUnsupportedMediaType:  true,
	http.StatusUnprocessableEntity:   true,
	http.StatusTooManyRequests:       true,
}

// refineWithdrawalError adds to an error that it leaves the outcome open.
func refineWithdrawalError(e *APIError) {
	if e.Kind == ErrConflict {
		e.Kind = ErrWithdrawalConflict
	}
	sent := e.StatusCode != 0 || e.Err != errNoKey && !neverSent(e.Err)
	if sent && (!refusesWithdrawal[e.StatusCode] || e.Kind == ErrMalformedResponse) {
		e.Err = &openOutcome{cause: e.Err}
	}
}

// An openOutcome is a cause after which nobody knows.
type openOutcome struct{ cause error }

func (o *openOutcome) Error() string {
	if o.cause == nil {
		return ErrOutcomeUnknown.Error()
	}
	return o.cause.Error() + ": " + ErrOutcomeUnknown.Error()
}

func (o *openOutcome) Unwrap() []error {
	if o.cause == nil {
		return []error{ErrOutcomeUnknown}
	}
	return []error{ErrOutcomeUnknown, o.cause}
}
