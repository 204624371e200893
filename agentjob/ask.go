package agentjob

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

// An inquiry is one call of an operation.
type inquiry struct {
	op           operation
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
	taskID       string // of an operation on a task
	chat         string // chat text in body: no error may quote it
	private      string // another secret in body
	anonymous    bool   // sent without the key
	silent       bool   // a successful answer holds chat text: no error may quote it

	keep func(*httpx.Answer) // sees the answer before anything else does; may be nil
}

var errNoKey = errors.New("the client has no APIKey")

// ask sends an inquiry and reads its answer with read, which sees only whole answers
// with a status of success that are no page.
func ask[T any](ctx context.Context, c *Client, in inquiry, read func(*httpx.Answer) (T, error)) (result T, err error) {
	if !in.anonymous && c.key.IsZero() {
		return result, &APIError{Op: in.op.name, TaskID: in.taskID, Kind: ErrUnauthorized, Err: errNoKey}
	}
	var judged *httpx.Answer
	var fault *APIError
	judge := func(a *httpx.Answer) *APIError {
		if judged != a {
			judged = a
			result, fault = judgeAnswer(c, in, a, read)
		}
		return fault
	}
	request := httpx.Request{
		Op: in.op.name, Policy: in.op.policy,
		Method: in.method, Path: in.path, Query: in.query, Header: in.header, Body: in.body,
		Suspect: func(a *httpx.Answer) bool {
			e := judge(a)
			return e != nil && (e.Kind == ErrMalformedResponse || a.Status < 300)
		},
	}
	if !in.anonymous {
		request.Bearer = c.key
	}
	if c.attempts > 0 {
		request.Policy.Attempts = min(request.Policy.Attempts, c.attempts)
	}
	answer, err := c.http.Do(ctx, request)
	if err != nil {
		return result, &APIError{Op: in.op.name, TaskID: in.taskID, Kind: ErrUnreachable, Err: err}
	}
	if in.keep != nil {
		in.keep(answer)
	}
	if e := judge(answer); e != nil {
		var none T
		return none, e
	}
	return result, nil
}

func judgeAnswer[T any](c *Client, in inquiry, a *httpx.Answer, read func(*httpx.Answer) (T, error)) (T, *APIError) {
	var result T
	kind, cause := classify(a)
	if kind == nil {
		if result, cause = read(a); cause == nil {
			return result, nil
		}
		kind = ErrMalformedResponse
		if errors.Is(cause, errNotOK) {
			kind = ErrUnavailable
		}
	}
	e := &APIError{
		Op: in.op.name, TaskID: in.taskID, StatusCode: a.Status, Kind: kind, Err: cause,
		RetryAfter: httpx.RetryAfter(a.Header, a.At),
	}
	if !in.silent || a.Status >= 300 {
		e.Message = message(a, in, c.key.Reveal())
	}
	return result, e
}

var (
	errRedirect = errors.New("redirect refused")
	errNotAPI   = errors.New("the body is not JSON: something other than the platform's API may have answered")
	errPage     = errors.New("the body is a page: something other than the platform's API answered")
)

// refusals gives the statuses of an answer of the API itself that have a kind of
// their own.
var refusals = map[int]error{
	http.StatusForbidden: ErrForbidden,
	http.StatusNotFound:  ErrNotFound,
	http.StatusGone:      ErrNotFound,
	http.StatusConflict:  ErrConflict,
}

// gateways gives the client errors that say nothing about the request: a proxy or an
// overloaded server sends them.
var gateways = map[int]bool{
	http.StatusProxyAuthRequired:  true,
	http.StatusRequestTimeout:     true,
	http.StatusMisdirectedRequest: true,
	http.StatusTooEarly:           true,
}

// classify sorts an answer by what its reader can do about it. A nil kind is a whole
// answer that reports success.
func classify(a *httpx.Answer) (kind, cause error) {
	status := a.Status
	switch {
	case status == http.StatusUnauthorized:
		return ErrUnauthorized, nil
	case status == http.StatusTooManyRequests:
		return ErrRateLimited, nil
	case status < 200, status >= 500, gateways[status]:
		return ErrUnavailable, nil
	case status >= 300 && status < 400:
		return ErrUnavailable, errRedirect
	// From here on the body counts: a page or half an answer proves nothing.
	case a.Damage != nil:
		return ErrMalformedResponse, a.Damage
	case isHTML(a):
		return ErrMalformedResponse, errPage
	case status >= 200 && status < 300:
		return nil, nil
	case status != http.StatusConflict && !json.Valid(a.Body):
		return ErrMalformedResponse, errNotAPI
	}
	if kind := refusals[status]; kind != nil {
		return kind, nil
	}
	return ErrInvalid, nil
}
