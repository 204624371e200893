package agentjob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mocked returns a client whose every request gets one answer, and the count of requests.
func mocked(t *testing.T, r httpmock.Responder) (*Client, func() int) {
	t.Helper()
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(r)
	return clientOf(t, "https://platform.test/base", m), m.GetTotalCallCount
}

func reply(status int, contentType, body string) httpmock.Responder {
	return func(*http.Request) (*http.Response, error) {
		r := httpmock.NewStringResponse(status, body)
		r.Header.Set("Content-Type", contentType)
		return r, nil
	}
}

func TestEveryAnswerHasItsKind(t *testing.T) {
	type kinds map[string]error // by body
	all := func(kind error) kinds {
		return kinds{"json": kind, "empty": kind, "text": kind, "html": kind, "hidden html": kind, "cut": kind, "endless": kind}
	}
	refusal := func(kind error) kinds {
		k := all(ErrMalformedResponse)
		k["json"] = kind
		return k
	}
	conflict := refusal(ErrConflict)
	conflict["empty"], conflict["text"] = ErrConflict, ErrConflict
	endless := strings.Repeat("x", int(opRespond.policy.MaxBody)+1)
	bodies := map[string]httpmock.Responder{}
	answer := func(status int) map[string]httpmock.Responder {
		bodies["json"] = reply(status, jsonType, `{"error":"what happened"}`)
		bodies["empty"] = reply(status, "", "")
		bodies["text"] = reply(status, "text/plain", "what happened")
		bodies["html"] = reply(status, "text/html; charset=utf-8", "404")
		bodies["hidden html"] = reply(status, "text/plain", "\n<html>")
		bodies["endless"] = reply(status, "text/plain", endless)
		bodies["cut"] = func(*http.Request) (*http.Response, error) {
			r := httpmock.NewStringResponse(status, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"ok":`), failingReader{}))
			return r, nil
		}
		return bodies
	}
	success := kinds{
		"json": ErrUnavailable, "empty": nil, "text": nil,
		"html": ErrMalformedResponse, "hidden html": ErrMalformedResponse, "cut": ErrMalformedResponse, "endless": ErrMalformedResponse,
	}
	for status, want := range map[int]kinds{
		101: all(ErrUnavailable),
		200: success, 201: success, 202: success, 299: success,
		301: all(ErrUnavailable), 302: all(ErrUnavailable), 304: all(ErrUnavailable), 307: all(ErrUnavailable), 308: all(ErrUnavailable),
		400: refusal(ErrInvalid), 402: refusal(ErrInvalid), 405: refusal(ErrInvalid), 413: refusal(ErrInvalid), 415: refusal(ErrInvalid), 422: refusal(ErrInvalid), 499: refusal(ErrInvalid),
		401: all(ErrUnauthorized), 403: refusal(ErrForbidden), 404: refusal(ErrNotFound), 410: refusal(ErrNotFound), 409: conflict,
		407: all(ErrUnavailable), 408: all(ErrUnavailable), 421: all(ErrUnavailable), 425: all(ErrUnavailable), 429: all(ErrRateLimited),
		500: all(ErrUnavailable), 501: all(ErrUnavailable), 502: all(ErrUnavailable), 503: all(ErrUnavailable), 504: all(ErrUnavailable), 530: all(ErrUnavailable), 999: all(ErrUnavailable),
	} {
		for body, responder := range answer(status) {
			c, _ := mocked(t, responder)
			_, err := c.once().Respond(t.Context(), "t-1", Response{Text: "Hi"})
			name := fmt.Sprintf("%d %s", status, body)
			if want[body] == nil {
				assert.NoError(t, err, name)
				continue
			}
			e, ok := errors.AsType[*APIError](err)
			require.True(t, ok, name)
			assert.Equal(t, want[body], e.Kind, name)
			assert.Equal(t, status, e.StatusCode, name)
			assert.ErrorIs(t, err, want[body], name)
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// calls is every operation with a valid request.
var calls = map[string]func(context.Context, *Client) error{
	"me":        func(ctx context.Context, c *Client) error { _, err := c.Me(ctx); return err },
	"heartbeat": func(ctx context.Context, c *Client) error { _, err := c.Heartbeat(ctx, Heartbeat{}); return err },
	"poll":      func(ctx context.Context, c *Client) error { _, err := c.PollTask(ctx, Poll{}); return err },
	"progress":  func(ctx context.Context, c *Client) error { _, err := c.Progress(ctx, "t-1"); return err },
	"report progress": func(ctx context.Context, c *Client) error {
		return c.ReportProgress(ctx, "t-1", ProgressReport{Seq: 1, Message: "Halfway through"})
	},
	"respond": func(ctx context.Context, c *Client) error {
		_, err := c.Respond(ctx, "t-1", Response{Text: "The answer to everything"})
		return err
	},
	"overview": func(ctx context.Context, c *Client) error { _, err := c.Overview(ctx); return err },
	"reserve file": func(ctx context.Context, c *Client) error {
		_, err := c.ReserveFile(ctx, "t-1", FileReservation{ID: someFile, Name: "The answer to everything.mp4", Size: 10})
		return err
	},
	"finalize file": func(ctx context.Context, c *Client) error { _, err := c.FinalizeFile(ctx, "t-1", someFile); return err },
	"create withdrawal": func(ctx context.Context, c *Client) error {
		_, err := c.CreateWithdrawal(ctx, WithdrawalRequest{IdempotencyKey: "PRIVATE-KEY-1", ToAddress: someAddress, Amount: 1000})
		return err
	},
	"withdrawal": func(ctx context.Context, c *Client) error { _, err := c.Withdrawal(ctx, "w-1"); return err },
}

const (
	someFile    = "0e0e0e0e-0000-4000-8000-000000000005"
	someAddress = "0x00000000000000000000000000000000000000A1"
)

func TestHowOftenEachOperationIsSent(t *testing.T) {
	want := map[string]int{
		"me": 4, "heartbeat": 3, "poll": 1, "progress": 4, "report progress": 1, "respond": 4,
		"overview": 4, "reserve file": 4, "finalize file": 4, "create withdrawal": 1, "withdrawal": 4,
	}
	faults := map[string]httpmock.Responder{
		"503":            reply(503, "", ""),
		"no connection":  httpmock.NewErrorResponder(io.EOF),
		"a page":         reply(200, "text/html", "<html>"),
		"a page's 404":   reply(404, "text/html", "<html>"),
		"cut JSON":       reply(200, jsonType, "{"),
		"a failed 200":   reply(200, jsonType, `{"ok":false}`),
		"another's task": reply(200, jsonType, `{"taskId":"t-2"}`),
	}
	for fault, responder := range faults {
		for op, call := range calls {
			if fault == "another's task" && !strings.Contains("progress respond reserve file finalize file", op) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				c, count := mocked(t, responder)
				assert.Error(t, call(t.Context(), c), "%s: %s", op, fault)
				assert.Equal(t, want[op], count(), "%s: %s", op, fault)

				c, count = mocked(t, responder)
				assert.Error(t, call(t.Context(), c.once()))
				assert.Equal(t, 1, count(), "once, %s: %s", op, fault)
			})
		}
	}
	for op, call := range calls {
		for _, status := range []int{401, 403, 404, 409, 422, 307} {
			c, count := mocked(t, reply(status, jsonType, "{}"))
			assert.Error(t, call(t.Context(), c))
			assert.Equal(t, 1, count(), "%s: %d is final", op, status)
		}
	}
}

func TestRetriesEndWithTheFirstGoodAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		c, _ := mocked(t, func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			if len(bodies) < 3 {
				return httpmock.NewStringResponse(502, "<html>"), nil
			}
			return httpmock.NewStringResponse(200, `{"ok":true}`), nil
		})
		receipt, err := c.Respond(t.Context(), "t-1", Response{Text: "Grüße <b>", AttachmentIDs: []string{"f-1"}})
		require.NoError(t, err)
		assert.JSONEq(t, `{"ok":true}`, string(receipt.Raw))
		require.Len(t, bodies, 3)
		assert.JSONEq(t, `{"text":"Grüße <b>","attachmentIds":["f-1"]}`, bodies[0])
		assert.Equal(t, []string{bodies[0], bodies[0], bodies[0]}, bodies, "the same bytes")
	})
}

func TestRetryAfterIsObeyedOrReported(t *testing.T) {
	for header, want := range map[string]time.Duration{"25": 75 * time.Second, "3600": 0} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := mocked(t, func(*http.Request) (*http.Response, error) {
				r := httpmock.NewStringResponse(429, "")
				r.Header.Set("Retry-After", header)
				return r, nil
			})
			start := time.Now()
			_, err := c.Respond(t.Context(), "t-1", Response{Text: "Hi"})
			e, ok := errors.AsType[*APIError](err)
			require.True(t, ok)
			assert.Equal(t, ErrRateLimited, e.Kind)
			assert.Equal(t, header, fmt.Sprint(int(e.RetryAfter.Seconds())))
			assert.Equal(t, want, time.Since(start).Truncate(time.Second))
		})
	}
}

func TestAPollMayTakeFifteenSecondsLongerThanItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, count := mocked(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start := time.Now()
		_, err := c.PollTask(t.Context(), Poll{Wait: 40 * time.Second})
		assert.ErrorIs(t, err, ErrUnreachable)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 55*time.Second, time.Since(start))
		assert.Equal(t, 1, count())
	})
}

func TestAContextEndsEveryOperation(t *testing.T) {
	for op, call := range calls {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			c, _ := mocked(t, func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			err := call(ctx, c)
			assert.ErrorIs(t, err, context.Canceled, op)
			assert.ErrorIs(t, err, ErrUnreachable, op)
			e, ok := errors.AsType[*APIError](err)
			require.True(t, ok)
			assert.Zero(t, e.StatusCode)
			assert.Equal(t, op, e.Op)
		})
	}
}

func TestAnImpostorIsAskedOnce(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c := clientOf(t, server.URL, nil)
	_, err := c.Me(t.Context())
	assert.ErrorIs(t, err, ErrUnreachable)
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	assert.True(t, ok, "%v", err)
}

func TestACutBodyOnARealSocketIsNoAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"task":null}`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	c := clientOf(t, server.URL, nil).once()
	for op, call := range calls {
		err := call(t.Context(), c)
		assert.ErrorIs(t, err, ErrMalformedResponse, op)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, op)
	}
}

func TestEveryOperationSaysWhyItIsSentSoOften(t *testing.T) {
	for _, op := range operations {
		assert.NotEmpty(t, op.policy.Why, op.name)
		assert.NotEmpty(t, op.does, op.name)
		assert.Positive(t, op.policy.Attempts, op.name)
		assert.Positive(t, op.policy.MaxBody, op.name)
		assert.LessOrEqual(t, op.policy.Attempt, op.policy.Total, op.name)
	}
}
