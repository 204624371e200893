package httpx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agentjob/agentjob-go/connections/secret"
)

// A Policy says how one operation may be sent.
type Policy struct {
	Attempts int           // 1: never sent again
	Attempt  time.Duration // for one attempt, its body included
	Total    time.Duration // for all attempts and the pauses between them
	MaxBody  int64         // bytes of an answer
	Why      string        // why so, for whoever wants to change it
}

// A Client sends requests below one base URL. It is safe for concurrent use.
type Client struct {
	base      string
	next      http.RoundTripper
	jar       http.CookieJar
	userAgent string
	log       *slog.Logger
}

// New returns a client for a base URL, which must have no query. Transport and cookie
// jar come from client; nil makes a transport of its own.
func New(base *url.URL, client *http.Client, userAgent string, log *slog.Logger) *Client {
	c := &Client{base: strings.TrimRight(base.String(), "/"), userAgent: userAgent, log: log}
	if client != nil {
		c.next, c.jar = client.Transport, client.Jar
	}
	if c.next == nil {
		c.next = newTransport()
	}
	return c
}

// newTransport is the default transport with pings: without them requests go on being
// sent into a connection that died silently, for a quarter of an hour.
func newTransport() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // replaced by the program, for its reasons
	}
	t := standard.Clone()
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}

// CloseIdleConnections closes connections that are kept for later requests.
func (c *Client) CloseIdleConnections() {
	(&http.Client{Transport: c.next}).CloseIdleConnections()
}

// A Request is one call of an operation.
type Request struct {
	Op     string // for the log
	Policy Policy
	Method string
	Path   string // escaped, below the base URL
	Query  string // encoded
	Header http.Header
	Bearer secret.Secret // zero: sent without Authorization
	Body   []byte        // JSON; every attempt sends the same bytes

	// Suspect reports that a whole answer with a status that is not retried by itself
	// can't be what the server means. It is then asked again.
	Suspect func(*Answer) bool
}

// An Answer is what came back. Its status may be any.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	At     time.Time // when its headers came

	// Damage is why Body is not all of the body: it was cut, took too long, or is
	// over Policy.MaxBody ([ErrTooLarge]).
	Damage error
}

// ErrTooLarge: a body over the limit. Its connection was dropped.
var ErrTooLarge = errors.New("the answer is too large")

// Do sends the request as often as its policy allows and returns the last answer, or
// an error if there was none. Redirects are not followed but returned, so that
// nothing but the base URL's host ever sees the request.
func (c *Client) Do(ctx context.Context, r *Request) (*Answer, error) {
	if r.Policy.Attempts == 1 {
		return c.once(ctx, r)
	}
	bounded, cancel := context.WithTimeout(ctx, r.Policy.Total)
	defer cancel()
	plain, err := c.request(bounded, r)
	if err != nil {
		return nil, clean(err)
	}
	req, err := retryablehttp.FromRequest(plain)
	if err != nil {
		return nil, clean(err)
	}
	x := &exchange{request: r, limit: r.Policy.Attempt, next: c.next, log: c.log}
	loop := retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     x,
			Jar:           c.jar,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax:     r.Policy.Attempts - 1,
		CheckRetry:   x.again,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return x.pause },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	// The response is empty: exchange has read it. Its error is the last attempt's
	// or, of a redirect to nowhere, no concern of ours.
	_, err = loop.Do(req)
	switch {
	case x.answer != nil && !x.pausing:
		return x.answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case bounded.Err() != nil:
		return nil, late(r.Policy.Total)
	case x.err != nil:
		return nil, clean(x.err)
	default:
		return nil, clean(err)
	}
}

func (c *Client) request(ctx context.Context, r *Request) (*http.Request, error) {
	target := c.base + r.Path
	if r.Query != "" {
		target += "?" + r.Query
	}
	var body io.Reader // a nil slice in it would be a body
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if !r.Bearer.IsZero() {
		req.Header.Set("Authorization", "Bearer "+r.Bearer.Reveal())
	}
	return req, nil
}

// late is the error of a time-out of ours.
func late(after time.Duration) error {
	return fmt.Errorf("no whole answer within %v: %w", after, context.DeadlineExceeded)
}
