package agentjob

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A ValidationError says which field of a request or a configuration is wrong.
// Nothing was sent.
type ValidationError struct {
	Field  string // as in Go, such as "Text"
	Reason string // without the value
	Err    error  // an error to match, such as [ErrReplyTooLong], or nil
}

func (e *ValidationError) Error() string { return e.Field + " " + e.Reason }

// Unwrap returns Err.
func (e *ValidationError) Unwrap() error { return e.Err }

func invalid(field, format string, args ...any) error {
	return &ValidationError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// MaxReplyUnits is how long a reply's text may be, in UTF-16 code units: the stricter
// reading of the platform's 100,000 characters.
const MaxReplyUnits = 100_000

// The limits of the platform's guide of 2026-11-09.
const (
	maxAgentName      = 100 // characters
	maxIdempotencyKey = 88  // characters
	minWithdrawalKey  = 8   // characters: the shortest that the platform's older tools took
	maxFileName       = 255 // bytes, this package's choice
	minPollWait       = time.Second
	maxPollWait       = time.Minute
)

// maxTaskID bounds what is put into a URL. The platform's ids are UUIDs.
const maxTaskID = 512

var (
	fileID          = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	walletAddress   = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)
	serviceRevision = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	mimeType        = regexp.MustCompile(`^[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+*-]{1,127}$`)
)

func checkText(field, text string) error {
	if !utf8.ValidString(text) {
		return invalid(field, "is not valid UTF-8")
	}
	return nil
}

// checkAgentName allows the empty name: the platform then chooses one.
func checkAgentName(name string) error {
	if err := checkText("AgentName", name); err != nil {
		return err
	}
	switch n := utf8.RuneCountInString(name); {
	case n > maxAgentName:
		return invalid("AgentName", "has %d characters, at most %d are allowed", n, maxAgentName)
	case n > 0 && strings.TrimSpace(name) == "":
		return invalid("AgentName", "is blank; leave it empty for a name of the platform's choice")
	}
	return nil
}

func checkAttachmentTypes(types []string) error {
	for i, t := range types {
		if !mimeType.MatchString(t) {
			return invalid("AttachmentTypes", `[%d] is no MIME type such as "image/png"`, i)
		}
	}
	return nil
}

// usableTaskID reports whether an id can be part of a URL's path.
func usableTaskID(id string) bool {
	return id != "" && id != "." && id != ".." && len(id) <= maxTaskID
}

func checkTaskID(id string) error {
	if !usableTaskID(id) {
		return invalid("taskID", `is empty, "." or "..", or longer than %d bytes: no task is called so`, maxTaskID)
	}
	return nil
}

func (h Heartbeat) validate() error {
	if err := checkAttachmentTypes(h.AttachmentTypes); err != nil {
		return err
	}
	if h.ServiceRevision != "" && !serviceRevision.MatchString(h.ServiceRevision) {
		return invalid("ServiceRevision", "must be 1 to 128 of A-Z a-z 0-9 . _ -")
	}
	if h.RuntimeInfo == nil {
		return nil
	}
	if err := checkText("RuntimeInfo.Framework", h.RuntimeInfo.Framework); err != nil {
		return err
	}
	return checkText("RuntimeInfo.Model", h.RuntimeInfo.Model)
}

func (p Poll) validate() error {
	if p.Wait < minPollWait || p.Wait > maxPollWait {
		return invalid("Wait", "is %v, must be %v to %v", p.Wait, minPollWait, maxPollWait)
	}
	return checkAttachmentTypes(p.AttachmentTypes)
}

func (p ProgressReport) validate() error {
	if p.Seq < 1 {
		return invalid("Seq", "is %d, must be at least 1 and grow with every report", p.Seq)
	}
	if p.Percent != nil && (*p.Percent < 0 || *p.Percent > 100) {
		return invalid("Percent", "is %d, must be 0 to 100", *p.Percent)
	}
	return checkText("Message", p.Message)
}

func checkFileID(field, id string) error {
	if !fileID.MatchString(id) {
		return invalid(field, "is no UUID")
	}
	return nil
}

func (r FileReservation) validate() error {
	if err := checkFileID("ID", r.ID); err != nil {
		return err
	}
	switch {
	case !utf8.ValidString(r.Name), strings.ContainsFunc(r.Name, func(r rune) bool { return r == '/' || r == '\\' || !unicode.IsPrint(r) }):
		return invalid("Name", "must be a file's name alone, in valid UTF-8, without folders and control characters")
	case strings.Trim(r.Name, " .") == "", len(r.Name) > maxFileName:
		return invalid("Name", "is blank or longer than %d bytes", maxFileName)
	case r.Size < 1:
		return invalid("Size", "is %d bytes, must be at least 1", r.Size)
	}
	return nil
}

func (r WithdrawalRequest) validate() error {
	switch n := len(r.IdempotencyKey); {
	case n < minWithdrawalKey, n > maxIdempotencyKey, !printable(r.IdempotencyKey):
		return invalid("IdempotencyKey", "must be %d to %d visible ASCII characters", minWithdrawalKey, maxIdempotencyKey)
	case !walletAddress.MatchString(r.ToAddress):
		return invalid("ToAddress", "must be 0x and 40 hexadecimal digits")
	case strings.Trim(r.ToAddress, "0x") == "":
		return invalid("ToAddress", "is the zero address: what is sent there is lost")
	case r.Amount == 0:
		return invalid("Amount", "is zero")
	}
	return nil
}

func (r Response) validate() error {
	if err := checkText("Text", r.Text); err != nil {
		return err
	}
	if n := utf16Units(r.Text); n > MaxReplyUnits {
		return &ValidationError{
			Field: "Text", Err: ErrReplyTooLong,
			Reason: fmt.Sprintf("has %d UTF-16 code units, at most %d are allowed; it is never cut: make it shorter", n, MaxReplyUnits),
		}
	}
	for i, id := range r.AttachmentIDs {
		if strings.TrimSpace(id) == "" || !utf8.ValidString(id) {
			return invalid("AttachmentIDs", "[%d] is blank or not valid UTF-8", i)
		}
	}
	if len(r.AttachmentIDs) == 0 && strings.TrimSpace(r.Text) == "" {
		return invalid("Text", "is blank: a reply needs text (only Response.AttachmentIDs could stand in for it)")
	}
	return nil
}

// utf16Units counts as JavaScript does: two for a character beyond U+FFFF.
func utf16Units(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}
