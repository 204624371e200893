package agentjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"github.com/agentjob/agentjob-go/internal/httpx"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

const (
	registrationFormat   = 1
	maxRegistrationFile  = 64 << 20
	maxKeptRefusal       = 4 << 10 // bytes of an answer that is no success
	maxKeptAttempts      = 100
	registrationLockPoll = 50 * time.Millisecond
)

// A registrationFile is what is on disk about one registration. It is written whole,
// so it is always the state before or after a step.
type registrationFile struct {
	Format         int                    `json:"format"`
	BaseURL        string                 `json:"baseUrl"`
	AgentName      string                 `json:"agentName"`
	IdempotencyKey string                 `json:"idempotencyKey"`
	Attempts       []*registrationAttempt `json:"attempts"`

	path string
}

// A registrationAttempt is one request and what came back.
type registrationAttempt struct {
	At         time.Time      `json:"at"`
	Outcome    attemptOutcome `json:"outcome"`
	Status     int            `json:"status,omitempty"`
	RetryAfter time.Duration  `json:"retryAfterNanoseconds,omitempty"`
	AnsweredAt time.Time      `json:"answeredAt,omitzero"`
	Cut        bool           `json:"cut,omitempty"`    // Answer is not all of it
	Answer     string         `json:"answer,omitempty"` // the body of a success whole, of others the beginning
	Problem    string         `json:"problem,omitempty"`
}

// An attemptOutcome is how an attempt ended.
type attemptOutcome string

const (
	attemptSent        attemptOutcome = "sent"     // and nothing came back, or the process died
	attemptNotSent     attemptOutcome = "not sent" // the platform could not be reached at all
	attemptUnreadable  attemptOutcome = "unreadable"
	attemptRegistered  attemptOutcome = "registered"
	attemptExists      attemptOutcome = "exists, key not returned"
	attemptDisabled    attemptOutcome = "disabled"
	attemptBusy        attemptOutcome = "busy"
	attemptUnavailable attemptOutcome = "unavailable"
	attemptRateLimited attemptOutcome = "rate limited"
	attemptRefused     attemptOutcome = "refused"
)

// attemptOutcomes orders the kinds of errors to what the file says of them. What is
// missing is a refusal of the request as such.
var attemptOutcomes = []struct {
	kind    error
	outcome attemptOutcome
}{
	{ErrUnreachable, attemptSent},
	{ErrMalformedResponse, attemptUnreadable},
	{ErrRateLimited, attemptRateLimited},
	{ErrRegistrationDisabled, attemptDisabled},
	{ErrRegistrationBusy, attemptBusy},
	{ErrRegistrationUnavailable, attemptUnavailable},
	{ErrUnavailable, attemptUnavailable},
}

// begin notes an attempt that is about to be made.
func (f *registrationFile) begin(now time.Time) *registrationAttempt {
	for i := 0; len(f.Attempts) >= maxKeptAttempts && i < len(f.Attempts); i++ {
		if !f.Attempts[i].success() {
			f.Attempts = append(f.Attempts[:i], f.Attempts[i+1:]...)
			break
		}
	}
	attempt := &registrationAttempt{At: now.UTC(), Outcome: attemptSent}
	f.Attempts = append(f.Attempts, attempt)
	return attempt
}

// answered takes over the answer as it came.
func (a *registrationAttempt) answered(answer *httpx.Answer) {
	a.Status, a.AnsweredAt = answer.Status, answer.At.UTC()
	a.RetryAfter = httpx.RetryAfter(answer.Header, answer.At)
	body := answer.Body
	if !a.success() && len(body) > maxKeptRefusal {
		body = body[:maxKeptRefusal]
	}
	a.Answer = string(body)
	a.Cut = answer.Damage != nil || len(body) < len(answer.Body)
	a.Outcome = attemptUnreadable // until it was read
}

func (a *registrationAttempt) success() bool { return a.Status >= 200 && a.Status < 300 }

// conclude notes what the attempt meant.
func (a *registrationAttempt) conclude(err error, outcome RegistrationOutcome) {
	if err == nil {
		a.Outcome = attemptExists
		if outcome == Registered {
			a.Outcome = attemptRegistered
		}
		return
	}
	a.Problem = err.Error()
	if len(a.Answer) > maxKeptRefusal { // nothing can be read from it
		a.Answer, a.Cut = a.Answer[:maxKeptRefusal], true
	}
	a.Outcome = attemptRefused
	for _, row := range attemptOutcomes {
		if errors.Is(err, row.kind) {
			a.Outcome = row.outcome
			break
		}
	}
	if neverSent(err) {
		a.Outcome = attemptNotSent
	}
}

// lockRegistration makes this call the only one that uses the file.
func lockRegistration(ctx context.Context, file string) (unlock func(), err error) {
	if err := privatefile.EnsureDir(filepath.Dir(file)); err != nil {
		return nil, fmt.Errorf("agentjob: the registration's folder: %w", err)
	}
	// The lock has a file of its own, which stays: the registration itself is
	// replaced by every write.
	lock := flock.New(file+".lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLockContext(ctx, registrationLockPoll)
	if err != nil || !ok {
		return nil, fmt.Errorf("agentjob: wait for another registration with %s: %w", file, err)
	}
	return func() { _ = lock.Close() }, nil // closing is all that is left to do, and always frees
}

// openRegistration reads the file of a registration that was begun, or begins one in
// memory.
func openRegistration(opts RegisterOptions, base string) (*registrationFile, error) {
	f, err := readRegistration(opts.File)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := uuid.NewRandom()
		if err != nil {
			return nil, fmt.Errorf("agentjob: make an idempotency key: %w", err)
		}
		return &registrationFile{
			Format: registrationFormat, BaseURL: base, AgentName: opts.AgentName,
			IdempotencyKey: key.String(), path: opts.File,
		}, nil
	}
	switch {
	case err != nil:
		return nil, err
	case f.BaseURL != base:
		return nil, invalid("File", "%s belongs to a registration at %s, and the client's BaseURL is %s; use another file for another platform", opts.File, f.BaseURL, base)
	case opts.AgentName != "" && opts.AgentName != f.AgentName:
		return nil, invalid("AgentName", "differs from the one that %s was begun with (%q); leave it empty, or use another file for another agent", opts.File, f.AgentName)
	}
	return f, nil
}

// readRegistration changes nothing, whatever it finds.
func readRegistration(path string) (*registrationFile, error) {
	data, err := privatefile.ReadFile(path, maxRegistrationFile)
	if err != nil {
		return nil, fmt.Errorf("agentjob: read the registration: %w", err)
	}
	damaged := func(reason string) error {
		return fmt.Errorf("agentjob: the registration in %s can't be used: %s; it was left as it is: restore it from a backup, it may hold the only key", path, reason)
	}
	f := &registrationFile{path: path}
	switch err := json.Unmarshal(data, f); {
	case err != nil:
		return nil, damaged("it is not what this package writes") // err might quote a key
	case f.Format > registrationFormat:
		return nil, damaged("a newer version of this package wrote it")
	case f.Format != registrationFormat, f.BaseURL == "":
		return nil, damaged("it has no format or no platform")
	case f.IdempotencyKey == "", utf8.RuneCountInString(f.IdempotencyKey) > maxIdempotencyKey:
		return nil, damaged(fmt.Sprintf("its idempotency key must have 1 to %d characters", maxIdempotencyKey))
	}
	for _, a := range f.Attempts {
		if a == nil {
			return nil, damaged("an attempt is null")
		}
	}
	return f, nil
}

func (f *registrationFile) write() error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return privatefile.WriteFile(f.path, append(data, '\n'))
}

// LoadRegistration reads what [Client.Register] has stored, without asking the
// platform. A missing file is an error that matches [fs.ErrNotExist].
func LoadRegistration(file string) (*Registration, error) {
	f, err := readRegistration(file)
	if err != nil {
		return nil, err
	}
	return f.registration(), nil
}
