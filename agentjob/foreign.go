package agentjob

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
)

// Bytes go to and come from signed URLs, which are elsewhere. The provider key never does.

// usableURL reports whether bytes may be exchanged with a URL: https, or http if the
// platform itself is spoken to so, as in tests.
func (c *Client) usableURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(c.base, "http:")
}

const (
	transferBase  = 30 * time.Second
	transferSpeed = 128 << 10 // bytes a second, at the least
	transferMost  = 6 * time.Hour
)

// transferTime is how long so many bytes may take.
func transferTime(size int64) time.Duration {
	return min(transferBase+time.Duration(min(size/transferSpeed, int64(transferMost/time.Second)))*time.Second, transferMost)
}

// foreignHead is how much is read of an answer that says what became of a request.
const foreignHead = 4 << 10

var saysExpired = regexp.MustCompile(`(?i)expired`)

// classifyForeign sorts the answer of whoever keeps the bytes. Storage services answer 403
// for a signature that is over or wrong, some 400 with a word about it; expired is what that means
// here. The words themselves are shown to nobody, since they may quote the URL.
func classifyForeign(a *httpx.ForeignAnswer, head []byte, expired error) (kind, cause error) {
	switch status := a.Status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusGone,
		status == http.StatusBadRequest && saysExpired.Match(head):
		return expired, nil
	case status == http.StatusTooManyRequests:
		return ErrRateLimited, nil
	case status < 200, status >= 500, gateways[status]:
		return ErrUnavailable, nil
	case status >= 300 && status < 400:
		return ErrUnavailable, errRedirect
	case status >= 400:
		return ErrInvalid, nil
	}
	return nil, nil
}

// readHead reads the beginning of an answer and closes it.
func readHead(a *httpx.ForeignAnswer) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(a.Body, foreignHead))
	return head, errors.Join(err, a.Body.Close())
}

// passing reports a failure that another attempt may not meet.
func passing(e *APIError) bool { return e.Retryable() && !httpx.Untrusted(e.Err) }

func foreignRequest(op operation, method string, target secret.Secret, attempt int, limit time.Duration) *httpx.Foreign {
	return &httpx.Foreign{Op: op.name, Attempt: attempt, Method: method, URL: target, Header: http.Header{}, Limit: limit}
}
