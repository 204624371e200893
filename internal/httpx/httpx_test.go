package httpx

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentjob/agentjob-go/connections/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func client(t *testing.T, base string, next http.RoundTripper) *Client {
	u, err := url.Parse(base)
	require.NoError(t, err)
	return New(u, &http.Client{Transport: next}, "test", slog.New(slog.DiscardHandler))
}

var patient = Policy{Attempts: 4, Attempt: 10 * time.Second, Total: 2 * time.Minute, MaxBody: 1000}

func get() *Request { return &Request{Op: "op", Policy: patient, Method: "GET", Path: "/x"} }

func TestWhatIsSentAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply func() (*http.Response, error)
		calls int
	}{
		{"a good answer", func() (*http.Response, error) { return answer(200, "{}"), nil }, 1},
		{"a refusal", func() (*http.Response, error) { return answer(409, "{}"), nil }, 1},
		{"not implemented", func() (*http.Response, error) { return answer(501, ""), nil }, 1},
		{"a redirect", func() (*http.Response, error) { return answer(307, "", "Location", "http://elsewhere/"), nil }, 1},
		{"a redirect to nowhere", func() (*http.Response, error) { return answer(302, "", "Location", "://"), nil }, 1},
		{"a failure", func() (*http.Response, error) { return answer(503, ""), nil }, 4},
		{"a time-out's status", func() (*http.Response, error) { return answer(408, ""), nil }, 4},
		{"too many requests", func() (*http.Response, error) { return answer(429, ""), nil }, 4},
		{"too many, wait a little", func() (*http.Response, error) { return answer(429, "", "Retry-After", "20"), nil }, 4},
		{"too many, wait an hour", func() (*http.Response, error) { return answer(429, "", "Retry-After", "3600"), nil }, 1},
		{"no connection", func() (*http.Response, error) { return nil, io.EOF }, 4},
		{"an impostor", func() (*http.Response, error) { return nil, x509.UnknownAuthorityError{} }, 1},
		{"a suspect answer", func() (*http.Response, error) { return answer(200, "suspect"), nil }, 4},
		{"an endless body", func() (*http.Response, error) { return answer(200, strings.Repeat("x", 1001)), nil }, 4},
		{"a cut body", func() (*http.Response, error) {
			r := answer(200, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), errReader{io.ErrUnexpectedEOF}))
			return r, nil
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, policy := range []Policy{patient, {Attempts: 1, Attempt: time.Second, Total: time.Second, MaxBody: 1000}} {
					calls := 0
					r := get()
					r.Policy = policy
					r.Suspect = func(a *Answer) bool { return string(a.Body) == "suspect" }
					_, _ = client(t, "http://h", transport(func(*http.Request) (*http.Response, error) {
						calls++
						return c.reply()
					})).Do(t.Context(), r)
					assert.Equal(t, min(c.calls, policy.Attempts), calls)
				}
			})
		})
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func TestTheLastAnswerIsNeverLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := client(t, "http://h", transport(func(*http.Request) (*http.Response, error) {
			return answer(503, "why", "Retry-After", "1"), nil
		})).Do(t.Context(), get())
		require.NoError(t, err)
		assert.Equal(t, 503, a.Status)
		assert.Equal(t, "why", string(a.Body))
	})
}

func TestAnAnswerIsReturnedRatherThanAPauseBeyondTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := get()
		r.Policy.Total = 15 * time.Second
		a, err := client(t, "http://h", transport(func(*http.Request) (*http.Response, error) {
			return answer(503, "", "Retry-After", "20"), nil
		})).Do(t.Context(), r)
		require.NoError(t, err)
		assert.Equal(t, 503, a.Status)
		assert.Zero(t, time.Since(start))
	})
}

func TestCancellingEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		_, err := client(t, "http://h", transport(func(*http.Request) (*http.Response, error) {
			return answer(503, "", "Retry-After", "20"), nil
		})).Do(ctx, get())
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestAHangingServerIsAskedAgainWithinTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		start := time.Now()
		r := get()
		r.Policy.Total = 25 * time.Second
		_, err := client(t, "http://h", transport(func(r *http.Request) (*http.Response, error) {
			calls++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})).Do(t.Context(), r)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.GreaterOrEqual(t, calls, 2)
		assert.LessOrEqual(t, time.Since(start), 25*time.Second)
	})
}

func TestADrippingBodyEndsWithTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := get()
		r.Policy.Attempts = 1
		a, err := client(t, "http://h", transport(func(r *http.Request) (*http.Response, error) {
			resp := answer(200, "")
			resp.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				select {
				case <-time.After(time.Second):
					return copy(p, "x"), nil
				case <-r.Context().Done():
					return 0, r.Context().Err()
				}
			}))
			return resp, nil
		})).Do(t.Context(), r)
		require.NoError(t, err)
		assert.ErrorIs(t, a.Damage, context.DeadlineExceeded)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestEveryAttemptSendsTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		r := get()
		r.Method, r.Body = "POST", []byte(`{"a":1}`)
		_, err := client(t, "http://h", transport(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body)+r.Header.Get("Content-Type")+strconv.FormatInt(r.ContentLength, 10))
			return answer(500, ""), nil
		})).Do(t.Context(), r)
		require.NoError(t, err)
		assert.Equal(t, []string{`{"a":1}application/json7`}, unique(bodies))
		assert.Len(t, bodies, 4)
	})
}

func unique(in []string) (out []string) {
	for _, s := range in {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

func TestARequestStaysBelowTheBase(t *testing.T) {
	var seen *http.Request
	c := client(t, "https://h/prefix/", transport(func(r *http.Request) (*http.Response, error) {
		seen = r
		return answer(200, ""), nil
	}))
	r := get()
	r.Path, r.Query = "/tasks/"+url.PathEscape("a/../b\x00?")+"/x", "wait=1"
	r.Bearer = secret.New("ak_EXAMPLE")
	_, err := c.Do(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, "https://h/prefix/tasks/a%2F..%2Fb%00%3F/x?wait=1", seen.URL.String())
	assert.Equal(t, "Bearer ak_EXAMPLE", seen.Header.Get("Authorization"))
	assert.Equal(t, "application/json", seen.Header.Get("Accept"))
	assert.Equal(t, "test", seen.Header.Get("User-Agent"))
	assert.Empty(t, seen.Header.Get("Content-Type"))
	assert.Nil(t, seen.Body)
}

func TestTheKeyDoesNotFollowARedirect(t *testing.T) {
	var visits atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		c := client(t, server.URL, nil)
		r := get()
		r.Bearer = secret.New("ak_EXAMPLE")
		a, err := c.Do(t.Context(), r)
		require.NoError(t, err)
		assert.Equal(t, status, a.Status)
		c.CloseIdleConnections()
		server.Close()
	}
	assert.Zero(t, visits.Load())
}

func TestTheConnectionOfAnEndlessBodyIsDropped(t *testing.T) {
	gone := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				gone <- err
				return
			}
		}
	}))
	defer server.Close()
	c := client(t, server.URL, nil)
	defer c.CloseIdleConnections()
	r := get()
	r.Policy.Attempts = 1
	a, err := c.Do(t.Context(), r)
	require.NoError(t, err)
	assert.ErrorIs(t, a.Damage, ErrTooLarge)
	assert.Len(t, a.Body, 1000)
	assert.Error(t, <-gone)
}

func TestTheUsersClientIsNotChanged(t *testing.T) {
	user := &http.Client{Timeout: time.Nanosecond, CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	user.Transport = transport(func(*http.Request) (*http.Response, error) { return answer(302, "", "Location", "/y"), nil })
	u, _ := url.Parse("http://h")
	a, err := New(u, user, "", slog.New(slog.DiscardHandler)).Do(t.Context(), get())
	require.NoError(t, err)
	assert.Equal(t, 302, a.Status)
	assert.Equal(t, time.Nanosecond, user.Timeout)
	assert.NotNil(t, user.CheckRedirect)
}

func TestErrorsTellNoSecrets(t *testing.T) {
	dirty := &url.Error{Op: "Get", URL: "https://me:pw@h/?sig=S3CRET", Err: &net.OpError{
		Op: "dial", Net: "tcp",
		Err: errors.New("bad https://me:pw@proxy/a?sig=S3CRET#S3CRET and Bearer S3CRET, ak_S3CRET"),
	}}
	r := get()
	r.Policy.Attempts = 1
	_, err := client(t, "http://h", transport(func(*http.Request) (*http.Response, error) { return nil, dirty })).Do(t.Context(), r)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "S3CRET")
	assert.NotContains(t, err.Error(), "pw")
	assert.Contains(t, err.Error(), "proxy/a")
	op, ok := errors.AsType[*net.OpError](err)
	require.True(t, ok, "the kind of error can still be asked for")
	assert.Equal(t, "dial", op.Op)
	assert.NoError(t, errors.Unwrap(err), "the dirty text can't be unwrapped")
}

func TestTheLogHasNothingOfTheRequest(t *testing.T) {
	var out bytes.Buffer
	u, _ := url.Parse("http://h")
	c := New(u, &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		return answer(200, "ANSWER"), nil
	})}, "", slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	r := get()
	r.Method, r.Body, r.Query, r.Bearer = "POST", []byte("BODY"), "q=QUERY", secret.New("BEARER")
	_, err := c.Do(t.Context(), r)
	require.NoError(t, err)
	assert.Contains(t, out.String(), "op=op status=200")
	for _, word := range []string{"ANSWER", "BODY", "QUERY", "BEARER", "/x"} {
		assert.NotContains(t, out.String(), word)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 9, 12, 0, 0, 0, time.UTC)
	date := now.Add(-time.Hour).Format(http.TimeFormat)
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"-5", "", 0},
		{"NaN", "", 0},
		{"-Inf", "", 0},
		{"soon", "", 0},
		{"120", "", 2 * time.Minute},
		{" 1.5 ", "", 1500 * time.Millisecond},
		{"1e999", "", maxRetryAfter},
		{"Inf", "", maxRetryAfter},
		{"99999999999999999999999", "", maxRetryAfter},
		{now.Add(time.Minute).Format(http.TimeFormat), "", time.Minute},
		{now.Format(http.TimeFormat), date, time.Hour}, // the server's own clock counts
		{now.Add(-time.Minute).Format(http.TimeFormat), "", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", maxRetryAfter},
	} {
		h := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
		assert.Equal(t, c.want, RetryAfter(h, now), "%q %q", c.value, c.date)
	}
}

func FuzzDelay(f *testing.F) {
	f.Add(1, "5")
	f.Add(-3, "-1")
	f.Add(1<<62, "1e400")
	f.Add(7, "Mon, 01 Jan 0001 00:00:00 GMT")
	f.Fuzz(func(t *testing.T, n int, header string) {
		asked := RetryAfter(http.Header{"Retry-After": {header}}, time.Now())
		if asked < 0 || asked > maxRetryAfter {
			t.Fatalf("RetryAfter(%q) = %v", header, asked)
		}
		pause, ok := delay(n, asked)
		if pause < 0 || pause > maxPause {
			t.Fatalf("delay(%d, %v) = %v", n, asked, pause)
		}
		if ok && pause < asked {
			t.Fatalf("delay(%d, %v) = %v, shorter than asked", n, asked, pause)
		}
		if ok != (asked <= maxPause) {
			t.Fatalf("delay(%d, %v): ok = %v", n, asked, ok)
		}
	})
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, nothing in it?":                  "plain text, nothing in it?",
		"key ak_EXAMPLE1-2_3, gone":                   "key [redacted], gone",
		"Authorization: bearer abc.def":               "Authorization: Bearer [redacted]",
		"https://u:p@h/p?a=b#c end":                   "https://h/p?[redacted] end",
		"GET /f?X-Sig=abc&y=1 failed":                 "GET /f?[redacted] failed",
		`see "https://h/#access_token=1"`:             `see "https://h/?[redacted]"`,
		"postgres://user:pa@ss@h/db, https://h/plain": "postgres://h/db, https://h/plain",
	} {
		assert.Equal(t, want, Redact(in))
	}
}
