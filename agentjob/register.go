package agentjob

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
)

// RegisterOptions says what to register.
type RegisterOptions struct {
	// File is where the registration is kept, required: the private idempotency key,
	// every attempt, and the platform's answer with the provider key. Its folder is
	// made if need be and must be the owner's alone. Back it up like a password.
	File string
	// AgentName is the new agent's name, 1 to 100 characters; empty lets the platform
	// choose. A file that exists already knows its name.
	AgentName string
}

// RegistrationOutcome says what a registration led to.
type RegistrationOutcome string

// The outcomes.
const (
	// Registered: there is an agent, and APIKey is its provider key.
	Registered RegistrationOutcome = "registered"
	// ExistsKeyNotReturned: there is an agent, and the platform did not hand out its
	// key, or not again. Registering more does not help: a new key comes from a reset
	// in the dashboard.
	ExistsKeyNotReturned RegistrationOutcome = "exists-key-not-returned"
	// RegistrationPending: no answer has settled it yet. Only LoadRegistration
	// returns it.
	RegistrationPending RegistrationOutcome = "pending"
)

// A Registration is what the platform answered. Fields it left out are empty.
type Registration struct {
	Outcome       RegistrationOutcome
	APIKey        secret.Secret // zero unless Outcome is Registered
	AgentID       string
	AgentName     string // as asked for
	WalletAddress string
	WalletType    string    // "server_wallet"
	Message       string    // the platform's words for people
	BaseURL       string    // the platform that has the agent
	At            time.Time // when the answer came; zero while pending
	File          string
}

// registrationAnswer is what wire.go reads.
type registrationAnswer struct {
	agentID, walletAddress, walletType, message, apiKey string
}

// Register makes an agent on the platform, or returns the one that opts.File has
// already, without asking the platform.
//
// Every call sends one request at most, and a failed one counts too: the platform
// allows two a day for an IP address, so never call it in a loop.
// [NextRegistrationTry] tells when another call makes sense. The private idempotency
// key is on disk before the request is sent, and every call with this file uses the
// same one: if an answer is lost, the next call finds the agent that may have been
// made. Another name or platform than the file's is a [*ValidationError]. Calls with
// the same file wait for each other, in other processes too, until ctx ends.
//
// The file keeps the key that the platform issued. After a reset in the dashboard that key no
// longer works: give the new one to [NewClient], for example by secret.FromEnv.
//
// Look at Outcome: [ExistsKeyNotReturned] comes without an error. If the answer came
// but could not be written to the file, Register returns both the Registration and an
// error: keep the key at once, it is nowhere else.
func (c *Client) Register(ctx context.Context, opts RegisterOptions) (*Registration, error) {
	if opts.File == "" {
		return nil, invalid("File", "is required: it keeps the key that the platform shows once")
	}
	if err := checkAgentName(opts.AgentName); err != nil {
		return nil, err
	}
	unlock, err := lockRegistration(ctx, opts.File)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f, err := openRegistration(opts, c.base)
	if err != nil {
		return nil, err
	}
	if reg := f.registration(); reg.Outcome != RegistrationPending {
		return reg, nil
	}
	return c.register(ctx, f)
}

// register sends the one request: noted before, its answer kept after.
func (c *Client) register(ctx context.Context, f *registrationFile) (*Registration, error) {
	body, err := json.Marshal(struct {
		AgentName      string `json:"agentName,omitempty"`
		IdempotencyKey string `json:"idempotencyKey"`
	}{f.AgentName, f.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	attempt := f.begin(time.Now())
	if err := f.write(); err != nil {
		return nil, fmt.Errorf("agentjob: nothing was sent, since the idempotency key can't be kept: %w", err)
	}
	err = c.sendRegistration(ctx, f, body, func(a *httpx.Answer) {
		attempt.answered(a)
		// The write below has all that this one has, and its error counts.
		_ = f.write()
	})
	// What the file says counts: a body that is whole to its last brace is an answer,
	// even if the connection broke after it.
	reg := f.registration()
	if reg.Outcome != RegistrationPending {
		err = nil
	}
	attempt.conclude(err, reg.Outcome)
	kept := f.write()
	switch {
	case err != nil:
		return nil, errors.Join(err, kept)
	case kept != nil:
		return reg, fmt.Errorf("agentjob: the platform has answered, but that can't be noted in the file: keep the key now, it is shown once: %w", kept)
	}
	return reg, nil
}

// sendRegistration returns nil once an answer says which agent there is.
func (c *Client) sendRegistration(ctx context.Context, f *registrationFile, body []byte, keep func(*httpx.Answer)) error {
	in := inquiry{
		op: opRegister, method: http.MethodPost, path: "/api/register/auto",
		body: body, private: f.IdempotencyKey, anonymous: true, keep: keep,
	}
	_, err := ask(ctx, c, in, func(a *httpx.Answer) (struct{}, error) {
		return struct{}{}, decodeRegistration(a.Body, new(registrationAnswer))
	})
	if e, ok := errors.AsType[*APIError](err); ok {
		refineRegistrationError(e, time.Now())
	}
	return err
}

// The platform has no codes for why it refuses to register, only words. The package
// looks for "disabled" in a 503 and takes the rest for a lock; the guide names the
// third case, unavailable, and the two limits of a 429. The other words are guesses.
var (
	saysDisabled = regexp.MustCompile(`(?i)\bdisabled\b|\bnot enabled\b|\b(switched|turned) off\b`)
	saysBusy     = regexp.MustCompile(`(?i)\bbusy\b|\bin progress\b|\block(ed)?\b|\balready (running|being)\b`)
	saysPerIP    = regexp.MustCompile(`(?i)\b(per[- ])?ip\b|\baddress\b|\bnetwork\b`)
	saysPlatform = regexp.MustCompile(`(?i)\bplatform\b|\bglobal\b|\bserver[ -]?wallets?\b|\ball agents\b|\bquota\b`)
)

// refineRegistrationError tells the ways apart in which registering fails.
func refineRegistrationError(e *APIError, now time.Time) {
	switch {
	case e.Kind == ErrRateLimited:
		e.ResetsAt = nextUTCDay(now)
		switch {
		case saysPerIP.MatchString(e.Message):
			e.Window = WindowPerIP
		case saysPlatform.MatchString(e.Message):
			e.Window = WindowPlatform
		}
	case e.Kind != ErrUnavailable || e.StatusCode >= 300 && e.StatusCode < 500:
	case e.StatusCode == http.StatusServiceUnavailable && saysDisabled.MatchString(e.Message):
		e.Kind = ErrRegistrationDisabled
	case e.StatusCode == http.StatusServiceUnavailable && saysBusy.MatchString(e.Message):
		e.Kind = ErrRegistrationBusy
	default:
		e.Kind = ErrRegistrationUnavailable
	}
}

// neverSent reports a request that certainly did not reach the platform.
func neverSent(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// nextUTCDay is when the platform's daily limits begin anew.
func nextUTCDay(now time.Time) time.Time {
	y, m, d := now.UTC().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// registration is what the file's answers say.
func (f *registrationFile) registration() *Registration {
	reg := &Registration{Outcome: RegistrationPending, AgentName: f.AgentName, BaseURL: f.BaseURL, File: f.path}
	for _, attempt := range f.Attempts {
		var a registrationAnswer
		if !attempt.success() || decodeRegistration([]byte(attempt.Answer), &a) != nil {
			continue
		}
		reg.Outcome = ExistsKeyNotReturned
		reg.At = attempt.AnsweredAt
		reg.AgentID = cmp.Or(a.agentID, reg.AgentID)
		reg.WalletAddress = cmp.Or(a.walletAddress, reg.WalletAddress)
		reg.WalletType = cmp.Or(a.walletType, reg.WalletType)
		reg.Message = cut(httpx.Redact(plain(a.message)), maxMessage)
		if a.apiKey != "" {
			reg.Outcome = Registered
			reg.APIKey = secret.New(a.apiKey)
			break
		}
	}
	return reg
}
