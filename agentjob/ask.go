package agentjob

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

// An inquiry is one call of an operation.
type inquiry struct {
	op           operation
	method, path string
	query        string // encoded
	header       http.Header
	body         []byte
	taskID       string // of an operation on a task
	chat         string // chat text in body: no error may quote it
	reply        bool   // body is an encoded Response, with chat text
	private      string // another secret in body
	anonymous    bool   // sent without the key
	silent       bool   // a successful answer holds chat text or a private URL: no error may quote it
	mute         bool   // no answer may be quoted

	keep func(*httpx.Answer) // sees the answer before anything else does; may be nil
}

var errNoKey = errors.New("the client has no APIKey")

// An asking is an inquiry under way, with what its last answer was judged to be.
type asking[T any] struct {
	inquiry
	client *Client
	read   func(*httpx.Answer) (T, error)

	judged *httpx.Answer
	result T
	fault  *APIError
}

func (q *asking[T]) judge(a *httpx.Answer) *APIError {
	if q.judged != a {
		q.judged = a
		q.result, q.fault = judgeAnswer(q.client, q.inquiry, a, q.read)
	}
	return q.fault
}

// suspect reports an answer that may be no answer of the platform's.
func (q *asking[T]) suspect(a *httpx.Answer) bool {
	e := q.judge(a)
	return e != nil && (e.Kind == ErrMalformedResponse || a.Status < 300)
}

func (q *asking[T]) request() *httpx.Request {
	r := &httpx.Request{
		Op: q.op.name, Policy: q.op.policy,
		Method: q.method, Path: q.path, Query: q.query, Header: q.header, Body: q.body,
	}
	if !q.anonymous {
		r.Bearer = q.client.key
	}
	if q.client.attempts > 0 {
		r.Policy.Attempts = min(r.Policy.Attempts, q.client.attempts)
	}
	if r.Policy.Attempts > 1 {
		r.Suspect = q.suspect
	}
	return r
}

// ask sends an inquiry and reads its answer with read, which sees only whole answers
// with a status of success that are no page. While it waits, little is kept: a worker
// spends its life here.
func ask[T any](ctx context.Context, c *Client, in inquiry, read func(*httpx.Answer) (T, error)) (T, error) {
	var none T
	q := &asking[T]{inquiry: in, client: c, read: read}
	if !q.anonymous && c.key.IsZero() {
		return none, &APIError{Op: q.op.name, TaskID: q.taskID, Kind: ErrUnauthorized, Err: errNoKey}
	}
	answer, err := c.http.Do(ctx, q.request())
	if err != nil {
		return none, &APIError{Op: q.op.name, TaskID: q.taskID, Kind: ErrUnreachable, Err: err}
	}
	if q.keep != nil {
		q.keep(answer)
	}
	if e := q.judge(answer); e != nil {
		return none, e
	}
	return q.result, nil
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
	if !in.mute && (!in.silent || a.Status >= 300) {
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
