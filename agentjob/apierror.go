package agentjob

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// An APIError is what became of a request: an answer that is no success, or none. It
// matches its Kind and its cause with errors.Is. Its text is one line without keys,
// signed URLs or chat text.
type APIError struct {
	// Op is "register", "me", "heartbeat", "poll", "progress", "report progress", "respond",
	// "overview", "registration quota", "reserve file", "upload file", "finalize file",
	// "open attachment", "create withdrawal" or "withdrawal".
	Op         string
	TaskID     string        // of an operation on a task
	StatusCode int           // 0: no answer
	Kind       error         // one of the platform errors, such as [ErrConflict]
	Message    string        // what the platform said, made safe: at most 200 characters; "" if it said nothing
	RetryAfter time.Duration // as the platform asked, 0 if it did not, at most a year: bound it
	Window     RateWindow    // which limit of registrations was hit
	ResetsAt   time.Time     // when that limit begins anew; zero: not known
	Err        error         // why, beyond the status: a network's or a context's error, or nil
}

// A RateWindow is a limit of registrations.
type RateWindow string

// The limits. Both begin anew at 00:00 UTC.
const (
	WindowUnknown  RateWindow = ""
	WindowPerIP    RateWindow = "per-ip"   // two tries a day by default, failed ones included
	WindowPlatform RateWindow = "platform" // all registrations of a day
)

// Unwrap returns the kind and the cause.
func (e *APIError) Unwrap() []error {
	errs := make([]error, 0, 2)
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Retryable reports whether the same request may succeed later although nobody
// changes anything here. It says nothing about whether repeating is harmless.
func (e *APIError) Retryable() bool { return advice[e.Kind].retry }

// advice says for each kind of error what the reader can do.
var advice = map[error]struct {
	retry bool
	next  string
}{
	ErrUnauthorized:            {false, "check the provider key; a lost one is replaced in the dashboard"},
	ErrForbidden:               {false, "check that the key belongs to this agent"},
	ErrRegistrationDisabled:    {false, "register by email, or ask the platform; the file keeps its place"},
	ErrRegistrationBusy:        {true, "try again in a minute with the same file"},
	ErrRegistrationUnavailable: {true, "try again later with the same file"},
	ErrRateLimited:             {true, "wait before the next request"},
	ErrConflict:                {false, "nothing more can be sent for it"},
	ErrNotFound:                {false, "check the id, the key and the base URL"},
	ErrInvalid:                 {false, "the same request will be refused again"},
	ErrUnavailable:             {true, "try again later"},
	ErrMalformedResponse:       {true, "try again; if it stays so, check the base URL and what is between"},
	ErrUnreachable:             {true, "check the network, the proxy and the base URL"},
	ErrAdminSession:            {false, "sign in on the website as an admin and take the cookie anew"},
	ErrUploadExpired:           {false, "reserve the same file again for a new URL"},
	ErrFileSize:                {false, "reserve the file as it is now, with a new id"},
	ErrFileUnreadable:          {false, "check the file"},
	ErrAttachmentExpired:       {false, "ask the customer for the source again"},
	ErrAttachmentSize:          {false, "don't use it; ask the customer for another file"},
	ErrAttachmentType:          {false, "don't use it; ask the customer for another file"},
	ErrWithdrawalConflict:      {false, "look for the withdrawal that has the key"},
}

// Error tells what was done, what came, and what to do next.
func (e *APIError) Error() string {
	var b strings.Builder
	b.WriteString("agentjob: ")
	b.WriteString(e.does())
	if e.StatusCode != 0 {
		fmt.Fprintf(&b, ": %s", status(e.StatusCode))
	}
	if e.Kind != nil {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Message != "" {
		fmt.Fprintf(&b, ": the platform says %q", e.Message)
	}
	if next := advice[e.Kind].next; next != "" {
		fmt.Fprintf(&b, "; %s", next)
	}
	switch {
	case !e.ResetsAt.IsZero():
		fmt.Fprintf(&b, " (until %s)", e.ResetsAt.UTC().Format("2006-01-02 15:04 MST"))
	case e.RetryAfter > 0:
		fmt.Fprintf(&b, " (it asks for %v)", e.RetryAfter.Round(time.Second))
	}
	return b.String()
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, strings.ToLower(http.StatusText(code))))
}

func (e *APIError) does() string {
	does := e.Op
	for _, op := range operations {
		if op.name == e.Op {
			does = op.does
		}
	}
	if e.TaskID != "" {
		does += " task " + quoteID(e.TaskID)
	}
	return does
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,100}$`)

// quoteID returns an id fit for one line: most are, as they are.
func quoteID(id string) string {
	if plainID.MatchString(id) {
		return id
	}
	return fmt.Sprintf("%.100q", id)
}
