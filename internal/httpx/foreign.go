package httpx

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/connections/secret"
)

// A Foreign is one request to a signed URL, whose host is not the platform's. The URL is
// all the permission that it needs: neither a key nor a cookie goes with it.
type Foreign struct {
	Op      string // for the log
	Attempt int    // for the log
	Method  string
	URL     secret.Secret
	Header  http.Header
	Body    io.ReadCloser // nil: none. The transport may read it until it has closed it
	Length  int64         // of Body
	Limit   time.Duration // for all of it, reading the answer's body included
}

// A ForeignAnswer is what came back. Its status may be any.
type ForeignAnswer struct {
	Status int
	Header http.Header
	Length int64         // of Body, -1: not known
	Body   io.ReadCloser // close it; its errors don't tell the URL
	At     time.Time
}

// Foreign makes one attempt. Redirects are not followed but returned. No error tells the URL.
func (c *Client) Foreign(ctx context.Context, r *Foreign) (*ForeignAnswer, error) {
	bounded, cancel := context.WithTimeout(ctx, r.Limit)
	hide := hider{outer: ctx, bounded: bounded, url: r.URL.Reveal(), limit: r.Limit}
	req, err := http.NewRequestWithContext(bounded, r.Method, hide.url, nil)
	if err != nil {
		cancel()
		return nil, errors.New("the URL is none")
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept-Encoding", "identity") // bytes are counted as they are
	if r.Body != nil {
		req.Body, req.ContentLength = r.Body, r.Length
	}
	start := time.Now()
	resp, err := c.next.RoundTrip(req)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	c.log.LogAttrs(ctx, slog.LevelDebug, "agentjob: request",
		slog.String("op", r.Op), slog.Int("status", status),
		slog.Duration("took", time.Since(start)), slog.Int("attempt", r.Attempt))
	if err != nil {
		defer cancel()
		return nil, hide.err(err)
	}
	return &ForeignAnswer{
		Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, At: time.Now(),
		Body: &foreignBody{resp: resp, hide: hide, cancel: cancel},
	}, nil
}

// A foreignBody reads an answer and ends its time when it is closed.
type foreignBody struct {
	resp   *http.Response
	hide   hider
	cancel context.CancelFunc
}

func (b *foreignBody) Read(p []byte) (int, error) {
	if b.resp.Body == nil {
		return 0, io.EOF
	}
	if b.resp.StatusCode < 200 {
		return 0, errSwitched // the body is the connection
	}
	n, err := b.resp.Body.Read(p)
	if err != nil && err != io.EOF {
		err = b.hide.err(err)
	}
	return n, err
}

func (b *foreignBody) Close() error {
	defer b.cancel()
	if b.resp.Body == nil {
		return nil
	}
	if err := b.resp.Body.Close(); err != nil {
		return b.hide.err(err)
	}
	return nil
}

// A hider makes errors of one request fit to be seen.
type hider struct {
	outer, bounded context.Context
	url            string
	limit          time.Duration
}

func (h hider) err(err error) error {
	switch {
	case h.outer.Err() != nil:
		return h.outer.Err()
	case h.bounded.Err() != nil:
		return late(h.limit)
	}
	return &foreignError{text: h.text(err), err: err}
}

// text is what an error says, without the URL and its parts.
func (h hider) text(err error) string {
	for {
		wrapped, ok := err.(*url.Error)
		if !ok {
			break
		}
		err = wrapped.Err
	}
	secrets := []string{h.url}
	if u, parseErr := url.Parse(h.url); parseErr == nil {
		secrets = append(secrets, u.RequestURI(), u.RawQuery, u.EscapedPath(), u.Path)
	}
	text := err.Error()
	for _, s := range secrets {
		if len(s) > 1 {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return Redact(text)
}

// A foreignError says what an error is, and hands it out to nobody: it may hold the URL.
type foreignError struct {
	text string
	err  error
}

func (e *foreignError) Error() string        { return e.text }
func (e *foreignError) Is(target error) bool { return errors.Is(e.err, target) }

// Untrusted reports whether err, of [Client.Foreign], is about a server that can't prove who
// it is: asking it again is no use.
func Untrusted(err error) bool {
	e, ok := errors.AsType[*foreignError](err)
	return ok && untrusted(e.err)
}

// Pause waits after the nth failed attempt (1, 2, ...) as [Client.Do] would. It reports
// whether there may be another one: not if the server asked for too long a pause or ctx is done.
func Pause(ctx context.Context, n int, asked time.Duration) bool {
	pause, ok := delay(n, asked)
	if !ok {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
