package httpx

import (
	"context"
	"errors"
	"net/url"
	"regexp"
)

// redactions take out what must not be seen in an error or a log, wherever it stands.
var redactions = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`://[^\s/?#"'<>]*@`), "://"},                           // user and password of a URL
	{regexp.MustCompile(`(://[^\s?#"'<>]*)[?#][^\s"'<>]*`), "$1?[redacted]"},   // its query and fragment: signatures
	{regexp.MustCompile(`\?[^\s"'<>=]*=[^\s"'<>]*`), "?[redacted]"},            // the same of a relative URL
	{regexp.MustCompile(`(?i)\bbearer[\s:=]+[^\s"',;]+`), "Bearer [redacted]"}, // a token
	{regexp.MustCompile(`ak_[A-Za-z0-9_-]+`), "[redacted]"},                    // a provider key
}

// Redact returns text without keys, tokens, and the queries and passwords of URLs.
func Redact(text string) string {
	for _, r := range redactions {
		text = r.find.ReplaceAllString(text, r.put)
	}
	return text
}

// clean returns err with a text that is safe to show. The text of *url.Error begins
// with the URL and is left out.
func clean(err error) error {
	for {
		wrapped, ok := err.(*url.Error)
		if !ok {
			break
		}
		err = wrapped.Err
	}
	if err == nil || err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return &cleanError{text: Redact(err.Error()), err: err}
}

// A cleanError can be asked what it is with errors.Is and As, but does not hand out
// the error whose text may hold a secret by Unwrap.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string        { return e.text }
func (e *cleanError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *cleanError) As(target any) bool   { return errors.As(e.err, target) }
