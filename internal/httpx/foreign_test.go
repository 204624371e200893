package httpx

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

const signed = "https://files.example/private/clip.mp4?X-Signature=S3CRET&X-Expires=300"

func foreignClient(t *testing.T, r httpmock.Responder) *Client {
	t.Helper()
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(r)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	files, err := url.Parse("https://files.example/")
	require.NoError(t, err)
	jar.SetCookies(files, []*http.Cookie{{Name: "session", Value: "S3CRET"}})
	base, err := url.Parse("https://platform.example")
	require.NoError(t, err)
	return New(base, &http.Client{Transport: m, Jar: jar}, "agent", slog.New(slog.DiscardHandler))
}

func TestForeignSendsNoCredentials(t *testing.T) {
	var got *http.Request
	c := foreignClient(t, func(r *http.Request) (*http.Response, error) {
		got = r
		return httpmock.NewStringResponse(307, ""), nil
	})
	a, err := c.Foreign(t.Context(), &Foreign{Method: "PUT", URL: secret.New(signed), Header: http.Header{"Content-Type": {"video/mp4"}}, Body: io.NopCloser(strings.NewReader("x")), Length: 1, Limit: time.Minute})
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	assert.Equal(t, 307, a.Status, "not followed")
	assert.Equal(t, signed, got.URL.String())
	assert.Equal(t, http.Header{"Content-Type": {"video/mp4"}, "User-Agent": {"agent"}, "Accept-Encoding": {"identity"}}, got.Header)
	assert.EqualValues(t, 1, got.ContentLength)
	assert.Nil(t, got.GetBody, "net/http must not send it again by itself")
}

func TestForeignErrorsDontTellTheURL(t *testing.T) {
	cause := errors.New("cause")
	for _, err := range []error{
		&url.Error{Op: "Put", URL: signed, Err: cause},
		fmt.Errorf("to %s: %w", signed, cause),
		fmt.Errorf("PUT /private/clip.mp4?X-Signature=S3CRET&X-Expires=300 of /private/clip.mp4: %w", cause),
	} {
		c := foreignClient(t, httpmock.NewErrorResponder(err))
		_, got := c.Foreign(t.Context(), &Foreign{Method: "GET", URL: secret.New(signed), Limit: time.Minute})
		require.ErrorIs(t, got, cause)
		assert.NotContains(t, got.Error(), "S3CRET")
		assert.NotContains(t, got.Error(), "/private")
		_, handedOut := errors.AsType[*url.Error](got)
		assert.False(t, handedOut)
	}
}

func TestForeignTimeCoversTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := foreignClient(t, func(r *http.Request) (*http.Response, error) {
			resp := httpmock.NewStringResponse(200, "")
			resp.Body = endless{r.Context()}
			return resp, nil
		})
		start := time.Now()
		a, err := c.Foreign(t.Context(), &Foreign{Method: "GET", URL: secret.New(signed), Limit: time.Minute})
		require.NoError(t, err)
		_, err = a.Body.Read(make([]byte, 1))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, a.Body.Close())
	})
}

// endless is a body that never comes.
type endless struct{ ctx context.Context }

func (e endless) Read([]byte) (int, error) { <-e.ctx.Done(); return 0, e.ctx.Err() }
func (e endless) Close() error             { return nil }

func TestASwitchedForeignConnectionIsNotRead(t *testing.T) {
	c := foreignClient(t, func(r *http.Request) (*http.Response, error) {
		resp := httpmock.NewStringResponse(101, "")
		resp.Body = endless{r.Context()}
		return resp, nil
	})
	a, err := c.Foreign(t.Context(), &Foreign{Method: "GET", URL: secret.New(signed), Limit: time.Minute})
	require.NoError(t, err)
	_, err = a.Body.Read(make([]byte, 1))
	assert.ErrorIs(t, err, errSwitched)
	require.NoError(t, a.Body.Close())
}

func TestAnImpostorIsUntrusted(t *testing.T) {
	c := foreignClient(t, httpmock.NewErrorResponder(&tls.CertificateVerificationError{Err: errors.New("for " + signed)}))
	_, err := c.Foreign(t.Context(), &Foreign{Method: "GET", URL: secret.New(signed), Limit: time.Minute})
	assert.True(t, Untrusted(err))
	assert.NotContains(t, err.Error(), "S3CRET")
	assert.False(t, Untrusted(io.EOF))
}

func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		assert.True(t, Pause(t.Context(), 1, 20*time.Second))
		assert.Equal(t, 20*time.Second, time.Since(start))
		assert.False(t, Pause(t.Context(), 1, time.Hour), "the caller decides about so long a pause")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		assert.False(t, Pause(ended, 9, 20*time.Second))
		assert.Equal(t, 20*time.Second, time.Since(start))
	})
}
