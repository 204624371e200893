package agentjob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

// secured returns a client that takes only https URLs, whatever its platform is in the test.
func (c *Client) secured() *Client {
	secured := *c
	secured.base = "https" + strings.TrimPrefix(strings.TrimPrefix(c.base, "https"), "http")
	return &secured
}

// uploadTo returns a client whose uploads a function takes, and a file reserved for ten bytes.
func uploadTo(t *testing.T, take httpmock.Responder) (*Client, *ReservedFile, func() int) {
	t.Helper()
	c, count := mocked(t, take)
	return c, &ReservedFile{UploadURL: secret.New(someUpload), taskID: "t-1", size: 10, contentType: "video/mp4"}, count
}

// taking reads an upload and answers.
func taking(status int, body string) httpmock.Responder {
	return func(r *http.Request) (*http.Response, error) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		return httpmock.NewStringResponse(status, body), nil
	}
}

// tenBytes opens a good source and counts how often it was opened and closed.
func tenBytes(opened, closed *int) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		*opened++
		return closing{strings.NewReader("0123456789"), closed}, nil
	}
}

type closing struct {
	io.Reader
	closed *int
}

func (c closing) Close() error { *c.closed++; return nil }

func TestAnUploadSendsWhatWasToldAndNothingElse(t *testing.T) {
	var got *http.Request
	var body []byte
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(func(r *http.Request) (*http.Response, error) {
		got = r
		body, _ = io.ReadAll(r.Body)
		return httpmock.NewStringResponse(200, ""), nil
	})
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	files, err := url.Parse(someUpload)
	require.NoError(t, err)
	jar.SetCookies(files, []*http.Cookie{{Name: "session", Value: "S3CRET"}})
	c, err := NewClient(ClientConfig{APIKey: secret.New("ak_EXAMPLE_KEY"), HTTPClient: &http.Client{Transport: m, Jar: jar}})
	require.NoError(t, err)
	_, f, _ := uploadTo(t, nil)
	var opened, closed int
	require.NoError(t, c.UploadFile(t.Context(), f, tenBytes(&opened, &closed)))
	assert.Equal(t, "PUT", got.Method)
	assert.Equal(t, someUpload, got.URL.String())
	assert.EqualValues(t, 10, got.ContentLength)
	assert.Equal(t, "0123456789", string(body))
	assert.Equal(t, http.Header{"Content-Type": {"video/mp4"}, "User-Agent": {defaultUserAgent}, "Accept-Encoding": {"identity"}}, got.Header)
	assert.Equal(t, []int{1, 1}, []int{opened, closed})
}

func TestAReadyFileIsNotSent(t *testing.T) {
	c, f, count := uploadTo(t, taking(200, ""))
	f.Ready = true
	require.NoError(t, c.UploadFile(t.Context(), f, func() (io.ReadCloser, error) { t.Error("opened"); return nil, io.EOF }))
	assert.Zero(t, count())
}

func TestUploadsNeedNoKey(t *testing.T) {
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(taking(200, ""))
	c, err := NewClient(ClientConfig{HTTPClient: &http.Client{Transport: m}})
	require.NoError(t, err)
	_, f, _ := uploadTo(t, nil)
	assert.NoError(t, c.UploadReader(t.Context(), f, strings.NewReader("0123456789")))
}

func TestWhatBecomesOfAnUpload(t *testing.T) {
	for name, c := range map[string]struct {
		answer   httpmock.Responder
		kind     error
		attempts int
	}{
		"200":          {taking(200, ""), nil, 1},
		"204":          {taking(204, ""), nil, 1},
		"xml":          {taking(200, `{"ok":true}`), nil, 1},
		"a page":       {taking(200, "<html>welcome to S3CRET"), ErrMalformedResponse, 3},
		"403":          {taking(403, "<Error>S3CRET"), ErrUploadExpired, 1},
		"401":          {taking(401, ""), ErrUploadExpired, 1},
		"404":          {taking(404, ""), ErrUploadExpired, 1},
		"410":          {taking(410, ""), ErrUploadExpired, 1},
		"400 expired":  {taking(400, "<Code>ExpiredToken</Code> S3CRET"), ErrUploadExpired, 1},
		"400":          {taking(400, "S3CRET"), ErrInvalid, 1},
		"412":          {taking(412, ""), ErrInvalid, 1},
		"307":          {taking(307, ""), ErrUnavailable, 3},
		"429":          {taking(429, ""), ErrRateLimited, 3},
		"503":          {taking(503, "S3CRET"), ErrUnavailable, 3},
		"cut":          {httpmock.NewErrorResponder(errors.New("PUT " + someUpload + ": broken pipe")), ErrUnreachable, 3},
		"early answer": {httpmock.NewStringResponder(200, ""), ErrMalformedResponse, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, f, count := uploadTo(t, c.answer)
			var opened, closed int
			err := client.UploadFile(t.Context(), f, tenBytes(&opened, &closed))
			assert.Equal(t, []int{c.attempts, c.attempts, c.attempts}, []int{count(), opened, closed}, name)
			if c.kind == nil {
				assert.NoError(t, err, name)
				return
			}
			require.ErrorIs(t, err, c.kind, name)
			e, ok := errors.AsType[*APIError](err)
			require.True(t, ok)
			assert.Equal(t, []any{"upload file", "t-1", ""}, []any{e.Op, e.TaskID, e.Message})
			assert.NotContains(t, err.Error(), "S3CRET", name)
			assert.NotContains(t, err.Error(), "files.example", name)
		})
	}
	e := (&ReservedFile{taskID: "t-1"}).failed(ErrUploadExpired, nil)
	assert.EqualError(t, e, "agentjob: upload a file of task t-1: the upload URL has expired or was refused; reserve the same file again for a new URL")
}

func TestASourceOfAnotherLengthIsNeverASuccess(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "shorter": "012345678", "longer": "0123456789A", "much longer": strings.Repeat("x", 1<<20)} {
		for _, wrap := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader,
		} {
			took := false
			c, f, count := uploadTo(t, func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				took = len(body) == 10 || err == nil
				return httpmock.NewStringResponse(200, ""), nil // says so whatever came
			})
			err := c.UploadFile(t.Context(), f, func() (io.ReadCloser, error) { return io.NopCloser(wrap(strings.NewReader(text))), nil })
			require.ErrorIs(t, err, ErrFileSize, name)
			assert.False(t, took, "%s: nobody can take it for the whole file", name)
			assert.Equal(t, 1, count(), "another attempt won't be better")
		}
	}
}

func TestASourceThatFails(t *testing.T) {
	broken := errors.New("disk on fire")
	c, f, count := uploadTo(t, taking(200, ""))
	err := c.UploadFile(t.Context(), f, func() (io.ReadCloser, error) { return nil, broken })
	require.ErrorIs(t, err, ErrFileUnreadable)
	require.ErrorIs(t, err, broken)
	assert.Zero(t, count())
	for name, r := range map[string]io.Reader{
		"in the middle": io.MultiReader(strings.NewReader("01234"), iotest.ErrReader(broken)),
		"at the end":    io.MultiReader(strings.NewReader("0123456789"), iotest.ErrReader(broken)),
	} {
		err := c.UploadReader(t.Context(), f, r)
		require.ErrorIs(t, err, ErrFileUnreadable, name)
		require.ErrorIs(t, err, broken, name)
	}
	for name, r := range map[string]reading{
		"nothing for ever": func([]byte) (int, error) { return 0, nil },
		"too much":         func(p []byte) (int, error) { return len(p) + 1, nil },
	} {
		s := &sizedSource{source: r, left: 10}
		if name == "nothing for ever" {
			s.left = 0
			assert.ErrorIs(t, s.more(), errNoReads)
			continue
		}
		_, err := s.Read(make([]byte, 4))
		assert.Error(t, err, name)
	}
}

type reading func([]byte) (int, error)

func (r reading) Read(p []byte) (int, error) { return r(p) }

func TestAReaderIsReadOnce(t *testing.T) {
	c, f, count := uploadTo(t, taking(503, ""))
	err := c.UploadReader(t.Context(), f, strings.NewReader("0123456789"))
	assert.ErrorIs(t, err, ErrUnavailable)
	assert.Equal(t, 1, count())
}

func TestAnUploadStreams(t *testing.T) {
	const size = 64 << 20
	c, f, _ := uploadTo(t, func(r *http.Request) (*http.Response, error) {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 4096))
		if err != nil || n != size {
			return nil, errors.New("not whole")
		}
		return httpmock.NewStringResponse(200, ""), nil
	})
	f.size = size
	largest := 0
	source := reading(func(p []byte) (int, error) { largest = max(largest, len(p)); return len(p), nil })
	require.NoError(t, c.UploadReader(t.Context(), f, io.LimitReader(source, size)))
	assert.LessOrEqual(t, largest, 4096, "read as it is sent")
}

func TestAnUploadTakesAsLongAsItsSizeAllows(t *testing.T) {
	for size, want := range map[int64]time.Duration{
		1: 30 * time.Second, 50_000_000: 30*time.Second + 381*time.Second, 1 << 62: transferMost,
	} {
		assert.Equal(t, want, transferTime(size))
	}
	synctest.Test(t, func(t *testing.T) {
		c, f, count := uploadTo(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start := time.Now()
		err := c.UploadReader(t.Context(), f, strings.NewReader("0123456789"))
		assert.ErrorIs(t, err, ErrUnreachable)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 30*time.Second, time.Since(start))
		assert.Equal(t, 1, count())

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		var opened, closed int
		assert.ErrorIs(t, c.UploadFile(ctx, f, tenBytes(&opened, &closed)), context.Canceled)
		assert.Equal(t, []int{1, 1}, []int{opened, closed}, "no other attempt")
	})
}

func TestNobodyReadsASourceAfterItsUpload(t *testing.T) {
	var body io.Reader
	c, f, _ := uploadTo(t, func(r *http.Request) (*http.Response, error) {
		body = r.Body
		return httpmock.NewStringResponse(403, ""), nil
	})
	reads := 0
	source := reading(func(p []byte) (int, error) { reads++; return len(p), nil })
	assert.ErrorIs(t, c.UploadReader(t.Context(), f, source), ErrUploadExpired)
	_, err := body.Read(make([]byte, 1))
	assert.Error(t, err)
	assert.Zero(t, reads)
}

func TestTheLogOfAnUploadTellsNoURL(t *testing.T) {
	var out bytes.Buffer
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(taking(200, ""))
	c, err := NewClient(ClientConfig{HTTPClient: &http.Client{Transport: m}, Logger: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	_, f, _ := uploadTo(t, nil)
	require.NoError(t, c.UploadReader(t.Context(), f, strings.NewReader("0123456789")))
	assert.Contains(t, out.String(), `"op":"upload file","status":200`)
	assert.NotContains(t, out.String(), "S3CRET")
	assert.NotContains(t, out.String(), "files.example")
}
