package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// An exchange is one Do: the transport below the retrying loop and the loop's judge.
// As the transport it reads bodies itself, so that a body that is cut or endless
// counts as part of the attempt.
type exchange struct {
	request *Request
	limit   time.Duration // of an attempt
	next    http.RoundTripper
	log     *slog.Logger

	attempts int
	answer   *Answer // of the last attempt, nil if there was none
	err      error   // of the last attempt, if there was no answer
	pause    time.Duration
	pausing  bool // another attempt is to come
}

// RoundTrip makes one attempt.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), x.limit)
	defer cancel()
	return x.send(req.Context(), req.WithContext(ctx))
}

// send makes one attempt. The request's context is outer with the time of an attempt.
func (x *exchange) send(outer context.Context, req *http.Request) (*http.Response, error) {
	x.attempts++
	x.answer, x.err, x.pausing = nil, nil, false
	start := time.Now()
	resp, err := x.next.RoundTrip(req)
	if err == nil {
		x.answer = read(resp, x.request.Policy.MaxBody)
		resp.Body = http.NoBody
	}
	if req.Context().Err() != nil && outer.Err() == nil {
		switch {
		case err != nil:
			err = late(x.limit)
		case x.answer.Damage != nil:
			x.answer.Damage = late(x.limit)
		}
	}
	x.err = err
	x.note(time.Since(start))
	return resp, err
}

var errSwitched = errors.New("the server switched to another protocol, which was not asked for")

func read(resp *http.Response, limit int64) *Answer {
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, At: time.Now()}
	if resp.Body == nil {
		return a
	}
	if a.Status < 200 {
		// After a switch of protocols the body is the connection, which nothing ends.
		resp.Body.Close()
		a.Damage = errSwitched
		return a
	}
	// Closing a body before its end drops the connection, which is meant. Nothing
	// that was read can be lost by it.
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		body, err = body[:limit], ErrTooLarge
	}
	a.Body = body
	if err != nil {
		a.Damage = clean(err)
	}
	return a
}

// note logs an attempt: nothing of what was sent or came.
func (x *exchange) note(took time.Duration) {
	if !x.log.Enabled(context.Background(), slog.LevelDebug) {
		return // at no cost
	}
	status := 0
	if x.answer != nil {
		status = x.answer.Status
	}
	x.log.LogAttrs(context.Background(), slog.LevelDebug, "agentjob: request",
		slog.String("op", x.request.Op), slog.Int("status", status),
		slog.Duration("took", took), slog.Int("attempt", x.attempts))
}

// again decides whether another attempt is made. It is never made if its pause would
// outlast the time for the whole call: the answer that is there says more.
func (x *exchange) again(ctx context.Context, _ *http.Response, err error) (bool, error) {
	if x.answer != nil {
		err = nil // the client may not like where a redirect points: nobody goes there
	}
	if ctx.Err() != nil || x.attempts >= x.request.Policy.Attempts || !x.transient(err) {
		return false, err
	}
	var asked time.Duration
	if x.answer != nil {
		asked = RetryAfter(x.answer.Header, x.answer.At)
	}
	pause, ok := delay(x.attempts, asked)
	if deadline, has := ctx.Deadline(); !ok || has && time.Until(deadline) <= pause {
		return false, err
	}
	x.pause, x.pausing = pause, true
	return true, nil
}

// transient reports whether the same request may fare better.
func (x *exchange) transient(err error) bool {
	if err != nil {
		return !untrusted(err)
	}
	a := x.answer
	switch {
	case a.Damage != nil, transientStatus(a.Status):
		return true
	default:
		return x.request.Suspect != nil && x.request.Suspect(a)
	}
}

// transientStatus reports whether a status alone says to try again.
func transientStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return status >= 500
}

// untrusted reports a server that can't prove who it is.
func untrusted(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
}
