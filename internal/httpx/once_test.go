package httpx

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var single = Policy{Attempts: 1, Attempt: 10 * time.Second, Total: 2 * time.Minute, MaxBody: 1000}

func TestOneAttemptKeepsCookiesAndFollowsNothing(t *testing.T) {
	var cookies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies = append(cookies, r.Header.Get("Cookie"))
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/"})
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	c := New(base, &http.Client{Transport: server.Client().Transport, Jar: jar}, "test", slog.New(slog.DiscardHandler))
	for range 2 {
		a, err := c.Do(t.Context(), &Request{Op: "op", Policy: single, Method: "GET", Path: "/x"})
		require.NoError(t, err)
		assert.Equal(t, http.StatusFound, a.Status)
	}
	assert.Equal(t, []string{"", "session=1"}, cookies, "one request a call, the second with the cookie")
}

func TestOneAttemptFailsAsTheLastOfManyDoes(t *testing.T) {
	stuck := transport(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	broken := transport(func(r *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("refused for ak_secret")}
	})
	cut := transport(func(r *http.Request) (*http.Response, error) {
		a := answer(200, "")
		a.Body = io.NopCloser(waitingBody{r.Context()})
		return a, nil
	})
	r := &Request{Op: "op", Policy: single, Method: "POST", Path: "/x?signed=1", Body: []byte("{}")}
	synctest.Test(t, func(t *testing.T) {
		_, err := client(t, "http://test.invalid", stuck).Do(t.Context(), r)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "no whole answer within 10s")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = client(t, "http://test.invalid", stuck).Do(ctx, r)
		assert.Equal(t, context.DeadlineExceeded, err, "the caller's own time is up")

		_, err = client(t, "http://test.invalid", broken).Do(t.Context(), r)
		assert.EqualError(t, err, "refused for [redacted]")

		a, err := client(t, "http://test.invalid", cut).Do(t.Context(), r)
		require.NoError(t, err, "the status is known")
		assert.ErrorContains(t, a.Damage, "no whole answer within 10s")
	})
}

// A waitingBody never comes.
type waitingBody struct{ ctx context.Context }

func (b waitingBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}
