package agentjob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

var (
	// ErrUploadExpired: the upload URL is over, five minutes after it was made, or was refused for
	// another reason. [Client.ReserveFile] with the same reservation renews it.
	ErrUploadExpired = errors.New("the upload URL has expired or was refused")
	// ErrFileSize: a file has not as many bytes as were reserved for it: it has changed.
	ErrFileSize = errors.New("the file is not of the size that was reserved")
	// ErrFileUnreadable: a file's bytes could not be read here.
	ErrFileUnreadable = errors.New("the file could not be read")
)

var (
	errReaderUsed = errors.New("the reader was read already, and only an open function can give the bytes again")
	errEarly      = errors.New("the answer came before all bytes were sent")
)

// UploadFile sends a reserved file's bytes to where the platform wants them, as a stream:
// without the provider key, and never along a redirect. If the place is Ready it sends nothing. open
// gives the bytes from their beginning, once for each of up to three attempts, and what it returns is
// closed. A failure that may pass is tried again.
//
// Every attempt has half a minute, and the time that the bytes take at 128 KiB/s. UploadFile does
// not return while a read of the source is under way: it should not block for long.
//
// Success means that all bytes, as many as reserved, were taken; [Client.FinalizeFile] is next.
// The errors: [ErrUploadExpired], [ErrFileSize], [ErrFileUnreadable], [ErrInvalid] and those that may pass.
func (c *Client) UploadFile(ctx context.Context, f *ReservedFile, open func() (io.ReadCloser, error)) error {
	if f.Ready {
		return nil
	}
	for n := 1; ; n++ {
		e := c.openAndSend(ctx, f, open, n)
		switch {
		case e == nil:
			return nil
		case n >= opUpload.policy.Attempts, c.attempts > 0 && n >= c.attempts:
			return e
		case !passing(e), ctx.Err() != nil, !httpx.Pause(ctx, n, e.RetryAfter):
			return e
		}
	}
}

// UploadReader is [Client.UploadFile] for bytes that can be read only once: it makes one attempt.
// The reader is not closed.
func (c *Client) UploadReader(ctx context.Context, f *ReservedFile, r io.Reader) error {
	used := false
	return c.once().UploadFile(ctx, f, func() (io.ReadCloser, error) {
		if used {
			return nil, errReaderUsed
		}
		used = true
		return io.NopCloser(r), nil
	})
}

func (c *Client) openAndSend(ctx context.Context, f *ReservedFile, open func() (io.ReadCloser, error), attempt int) *APIError {
	source, err := open()
	if err != nil {
		return f.failed(ErrFileUnreadable, err)
	}
	defer source.Close() // it was only read
	return c.send(ctx, f, source, attempt)
}

// send makes one attempt.
func (c *Client) send(ctx context.Context, f *ReservedFile, source io.Reader, attempt int) *APIError {
	body := &sizedSource{source: source, left: f.size}
	r := foreignRequest(opUpload, "PUT", f.UploadURL, attempt, transferTime(f.size))
	r.Body, r.Length = body, f.size
	r.Header.Set("Content-Type", f.contentType)
	if f.size > foreignHead {
		r.Header.Set("Expect", "100-continue") // an expired URL is then told before the bytes are sent
	}
	answer, err := c.http.Foreign(ctx, r)
	var head []byte
	if err == nil {
		head, err = readHead(answer)
	}
	left, fault := body.end()
	switch {
	case errors.Is(fault, ErrFileSize):
		return f.failed(ErrFileSize, fault)
	case fault != nil:
		return f.failed(ErrFileUnreadable, fault)
	case answer == nil:
		return f.failed(ErrUnreachable, err)
	}
	kind, cause := classifyForeign(answer, head, ErrUploadExpired)
	switch {
	case kind != nil:
	case err != nil:
		kind, cause = ErrMalformedResponse, err
	case isHTML(&httpx.Answer{Header: answer.Header, Body: head}):
		kind, cause = ErrMalformedResponse, errPage
	case left > 0:
		kind, cause = ErrMalformedResponse, errEarly
	default:
		return nil
	}
	e := f.failed(kind, cause)
	e.StatusCode, e.RetryAfter = answer.Status, httpx.RetryAfter(answer.Header, answer.At)
	return e
}

func (f *ReservedFile) failed(kind, cause error) *APIError {
	return &APIError{Op: opUpload.name, TaskID: f.taskID, Kind: kind, Err: cause}
}

// sizeFault says how a file differs from its reservation.
func sizeFault(format string, args ...any) error {
	return &sizeError{fmt.Sprintf(format, args...)}
}

type sizeError struct{ text string }

func (e *sizeError) Error() string        { return e.text }
func (e *sizeError) Is(target error) bool { return target == ErrFileSize }
