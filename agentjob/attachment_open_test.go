package agentjob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
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

const someSource = "https://files.example/get/S3CRET?X-Signature=S3CRET"

func someAttachment() Attachment {
	return Attachment{ID: "a-1", Name: "a.png", ContentType: "image/png", Size: new(int64(10)), URL: someSource}
}

// serving answers with ten bytes, changed a little.
func serving(change func(*http.Response)) httpmock.Responder {
	return func(*http.Request) (*http.Response, error) {
		r := httpmock.NewStringResponse(200, "0123456789")
		r.ContentLength = 10
		r.Header.Set("Content-Type", "image/png")
		if change != nil {
			change(r)
		}
		return r, nil
	}
}

func text(s string) func(*http.Response) {
	return func(r *http.Response) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader(s)), -1 }
}

func TestAnAttachmentIsFetchedWithoutTheKey(t *testing.T) {
	var out bytes.Buffer
	var got *http.Request
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(func(r *http.Request) (*http.Response, error) { got = r; return serving(nil)(r) })
	c, err := NewClient(ClientConfig{
		APIKey: secret.New("ak_EXAMPLE_KEY"), HTTPClient: &http.Client{Transport: m},
		Logger: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(t, err)
	file, err := c.OpenAttachment(t.Context(), someAttachment(), AttachmentLimits{Types: []string{"image/jpeg", "Image/PNG"}})
	require.NoError(t, err)
	body, err := io.ReadAll(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	assert.Equal(t, "0123456789", string(body))
	assert.Equal(t, someSource, got.URL.String())
	assert.Equal(t, http.Header{"User-Agent": {defaultUserAgent}, "Accept-Encoding": {"identity"}}, got.Header)
	assert.Contains(t, out.String(), `"op":"open attachment","status":200`)
	assert.NotContains(t, out.String(), "S3CRET")
	assert.NotContains(t, out.String(), "files.example")
}

func TestAttachmentsThatAreTaken(t *testing.T) {
	unsaid := someAttachment()
	unsaid.Size, unsaid.ContentType = nil, ""
	markdown := someAttachment()
	markdown.ContentType = "text/markdown"
	jpeg := someAttachment()
	jpeg.ContentType = "image/jpg"
	typed := func(contentType string) func(*http.Response) {
		return func(r *http.Response) { r.Header.Set("Content-Type", contentType) }
	}
	for name, c := range map[string]struct {
		a      Attachment
		limits AttachmentLimits
		change func(*http.Response)
	}{
		"as advertised":         {someAttachment(), AttachmentLimits{MaxBytes: 10}, nil},
		"no length told":        {someAttachment(), AttachmentLimits{}, text("0123456789")},
		"nothing advertised":    {unsaid, AttachmentLimits{MaxBytes: 10}, text("0123456789")},
		"parameters":            {someAttachment(), AttachmentLimits{}, typed("IMAGE/png; x=y")},
		"bytes":                 {someAttachment(), AttachmentLimits{}, typed("application/octet-stream")},
		"other bytes":           {someAttachment(), AttachmentLimits{}, typed("binary/octet-stream")},
		"no type":               {someAttachment(), AttachmentLimits{}, typed("")},
		"plain text":            {markdown, AttachmentLimits{Types: []string{"text/markdown"}}, typed("text/plain; charset=utf-8")},
		"another spelling":      {jpeg, AttachmentLimits{Types: []string{"image/jpeg"}}, typed("image/jpeg")},
		"of type, only told":    {unsaid, AttachmentLimits{Types: []string{"image/png"}}, nil},
		"identity":              {someAttachment(), AttachmentLimits{}, func(r *http.Response) { r.Header.Set("Content-Encoding", "identity") }},
		"read byte by byte":     {someAttachment(), AttachmentLimits{}, func(r *http.Response) { r.Body = io.NopCloser(iotest.OneByteReader(r.Body)) }},
		"its end with its data": {someAttachment(), AttachmentLimits{}, func(r *http.Response) { r.Body = io.NopCloser(iotest.DataErrReader(r.Body)) }},
	} {
		client, _ := mocked(t, serving(c.change))
		file, err := client.OpenAttachment(t.Context(), c.a, c.limits)
		require.NoError(t, err, name)
		assert.NoError(t, iotest.TestReader(file, []byte("0123456789")), name)
		assert.NoError(t, file.Close())
	}
}

func TestAttachmentsThatAreRefused(t *testing.T) {
	unsaid := someAttachment()
	unsaid.Size, unsaid.ContentType = nil, ""
	header := func(name, value string) func(*http.Response) {
		return func(r *http.Response) { r.Header.Set(name, value) }
	}
	status := func(code int, body string) func(*http.Response) {
		return func(r *http.Response) {
			r.StatusCode, r.Body = code, io.NopCloser(strings.NewReader(body))
		}
	}
	for name, c := range map[string]struct {
		a        Attachment
		limits   AttachmentLimits
		change   func(*http.Response)
		kind     error
		attempts int
	}{
		"another type":     {someAttachment(), AttachmentLimits{}, header("Content-Type", "image/gif"), ErrAttachmentType, 1},
		"a page":           {someAttachment(), AttachmentLimits{}, header("Content-Type", "text/html"), ErrAttachmentType, 1},
		"type not allowed": {unsaid, AttachmentLimits{Types: []string{"image/jpeg"}}, nil, ErrAttachmentType, 1},
		"no type at all":   {unsaid, AttachmentLimits{Types: []string{"image/jpeg"}}, header("Content-Type", ""), ErrAttachmentType, 1},
		"longer":           {someAttachment(), AttachmentLimits{}, func(r *http.Response) { r.ContentLength = 11 }, ErrAttachmentSize, 1},
		"shorter":          {someAttachment(), AttachmentLimits{}, func(r *http.Response) { r.ContentLength = 9 }, ErrAttachmentSize, 1},
		"over the limit":   {unsaid, AttachmentLimits{MaxBytes: 9}, nil, ErrAttachmentSize, 1},
		"compressed":       {someAttachment(), AttachmentLimits{}, header("Content-Encoding", "gzip"), ErrMalformedResponse, 3},
		"a part":           {someAttachment(), AttachmentLimits{}, status(206, "01"), ErrMalformedResponse, 3},
		"403":              {someAttachment(), AttachmentLimits{}, status(403, "S3CRET"), ErrAttachmentExpired, 1},
		"404":              {someAttachment(), AttachmentLimits{}, status(404, ""), ErrAttachmentExpired, 1},
		"410":              {someAttachment(), AttachmentLimits{}, status(410, ""), ErrAttachmentExpired, 1},
		"400 expired":      {someAttachment(), AttachmentLimits{}, status(400, "token expired S3CRET"), ErrAttachmentExpired, 1},
		"400":              {someAttachment(), AttachmentLimits{}, status(400, "S3CRET"), ErrInvalid, 1},
		"redirect":         {someAttachment(), AttachmentLimits{}, status(302, ""), ErrUnavailable, 3},
		"503":              {someAttachment(), AttachmentLimits{}, status(503, ""), ErrUnavailable, 3},
		"429":              {someAttachment(), AttachmentLimits{}, status(429, ""), ErrRateLimited, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			closed := 0
			client, count := mocked(t, serving(func(r *http.Response) {
				if c.change != nil {
					c.change(r)
				}
				r.Body = closing{r.Body, &closed}
			}))
			_, err := client.OpenAttachment(t.Context(), c.a, c.limits)
			require.ErrorIs(t, err, c.kind, name)
			assert.Equal(t, c.attempts, count(), name)
			assert.GreaterOrEqual(t, closed, c.attempts, name)
			assert.NotContains(t, err.Error(), "S3CRET", name)
			assert.NotContains(t, err.Error(), "files.example", name)
		})
	}
	assert.EqualError(t, attachmentFailed(ErrAttachmentExpired, nil),
		"agentjob: fetch an attachment: the attachment's URL has expired or was refused; ask the customer for the source again")
}

func TestBytesAreCountedAsTheyCome(t *testing.T) {
	unsaid := someAttachment()
	unsaid.Size = nil
	for name, c := range map[string]struct {
		a     Attachment
		sent  string
		given string
		kind  error
	}{
		"longer":         {someAttachment(), "0123456789AB", "0123456789", ErrAttachmentSize},
		"shorter":        {someAttachment(), "012345678", "012345678", ErrAttachmentSize},
		"empty":          {someAttachment(), "", "", ErrAttachmentSize},
		"over the limit": {unsaid, "0123456789AB", "0123456789", ErrAttachmentSize},
		"within":         {unsaid, "01234", "01234", nil},
		"exactly":        {unsaid, "0123456789", "0123456789", nil},
	} {
		for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
			client, _ := mocked(t, serving(func(r *http.Response) {
				r.Body, r.ContentLength = io.NopCloser(wrap(strings.NewReader(c.sent))), -1
			}))
			file, err := client.OpenAttachment(t.Context(), c.a, AttachmentLimits{MaxBytes: 10})
			require.NoError(t, err)
			got, err := io.ReadAll(file)
			assert.Equal(t, c.given, string(got), name)
			if c.kind == nil {
				assert.NoError(t, err, name)
				continue
			}
			require.ErrorIs(t, err, c.kind, name)
			_, again := file.Read(make([]byte, 1))
			assert.Equal(t, err, again, "it stays so")
		}
	}
}

func TestAConnectionThatBreaksIsNoEnd(t *testing.T) {
	client, _ := mocked(t, serving(func(r *http.Response) {
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("0123"), iotest.ErrReader(errors.New("reset by "+someSource))))
	}))
	file, err := client.OpenAttachment(t.Context(), someAttachment(), AttachmentLimits{})
	require.NoError(t, err)
	_, err = io.ReadAll(file)
	require.ErrorIs(t, err, ErrUnreachable)
	assert.NotContains(t, err.Error(), "S3CRET")
}

func TestTheTimeOfAnAttachmentCoversReadingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := mocked(t, func(r *http.Request) (*http.Response, error) {
			return serving(func(resp *http.Response) {
				resp.Body = io.NopCloser(reading(func([]byte) (int, error) { <-r.Context().Done(); return 0, r.Context().Err() }))
			})(r)
		})
		start := time.Now()
		file, err := client.OpenAttachment(t.Context(), someAttachment(), AttachmentLimits{})
		require.NoError(t, err)
		_, err = file.Read(make([]byte, 1))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 30*time.Second, time.Since(start))
		require.NoError(t, file.Close())
	})
}

func TestAnAttachmentIsAskedForAgainBeforeItsFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		client, _ := mocked(t, func(r *http.Request) (*http.Response, error) {
			if n++; n < 3 {
				return nil, io.ErrUnexpectedEOF
			}
			return serving(nil)(r)
		})
		file, err := client.OpenAttachment(t.Context(), someAttachment(), AttachmentLimits{})
		require.NoError(t, err)
		assert.NoError(t, iotest.TestReader(file, []byte("0123456789")))
		require.NoError(t, file.Close())
	})
}
