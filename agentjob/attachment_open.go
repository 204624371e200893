package agentjob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
)

var (
	// ErrAttachmentExpired: a customer's file is not to be had any more: its URL is over, ten minutes
	// after the task was claimed, or was refused. Ask the customer for the source again.
	ErrAttachmentExpired = errors.New("the attachment's URL has expired or was refused")
	// ErrAttachmentSize: a customer's file has more bytes than allowed, or not as many as advertised.
	ErrAttachmentSize = errors.New("the attachment's size is not allowed or not as advertised")
	// ErrAttachmentType: a customer's file is of a type that is not allowed, or not of the advertised one.
	ErrAttachmentType = errors.New("the attachment's type is not allowed or not as advertised")
)

// DefaultAttachmentBytes is how large a customer's file may be if nobody says otherwise: a
// choice of this package. The platform has limits of its own.
const DefaultAttachmentBytes = 64 << 20

// AttachmentLimits says what a provider takes from a customer.
type AttachmentLimits struct {
	MaxBytes int64    // 0: [DefaultAttachmentBytes]
	Types    []string // MIME types, such as "image/png"; nil: whatever was advertised
}

// OpenAttachment fetches a customer's file from its private URL: without the provider key,
// and never along a redirect. The caller reads and closes it, promptly: half a minute and the time that its
// bytes take at 128 KiB/s are allowed in all.
//
// What was advertised and what the answer says must keep the limits and must agree, and the
// bytes are counted as they come: a reader of a file that is too long or short ends with
// [ErrAttachmentSize], not with io.EOF. Don't use what was read before the reader has said io.EOF.
// Whether the bytes are what their type says is for the caller to find out: the file is
// untrusted input. Before the first byte a failure that may pass is tried again.
//
// The errors are [*ValidationError] when the attachment as it was advertised is not
// allowed and nothing was sent, and [*APIError]; both match [ErrAttachmentSize] and
// [ErrAttachmentType], and the latter [ErrAttachmentExpired]. None holds the URL.
func (c *Client) OpenAttachment(ctx context.Context, a Attachment, limits AttachmentLimits) (io.ReadCloser, error) {
	if limits.MaxBytes == 0 {
		limits.MaxBytes = DefaultAttachmentBytes
	}
	if err := limits.check(c, a); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		file, e := c.fetch(ctx, a, limits, n)
		switch {
		case e == nil:
			return file, nil
		case n >= opOpenAttachment.policy.Attempts, c.attempts > 0 && n >= c.attempts:
			return nil, e
		case !passing(e), ctx.Err() != nil, !httpx.Pause(ctx, n, e.RetryAfter):
			return nil, e
		}
	}
}

// check refuses what is not allowed by what was advertised.
func (l AttachmentLimits) check(c *Client, a Attachment) error {
	switch {
	case l.MaxBytes < 0:
		return invalid("MaxBytes", "is negative")
	case !c.usableURL(a.URL):
		return invalid("URL", "is no https URL")
	case a.Size != nil && *a.Size > l.MaxBytes:
		return &ValidationError{"Size", fmt.Sprintf("is %d bytes, at most %d are allowed", *a.Size, l.MaxBytes), ErrAttachmentSize}
	case a.ContentType != "" && !l.allows(a.ContentType):
		return &ValidationError{"ContentType", "is none of the allowed types", ErrAttachmentType}
	}
	for i, t := range l.Types {
		if !mimeType.MatchString(t) {
			return invalid("Types", `[%d] is no MIME type such as "image/png"`, i)
		}
	}
	return nil
}

func (l AttachmentLimits) allows(contentType string) bool {
	return l.Types == nil || slices.ContainsFunc(l.Types, func(t string) bool { return foldedType(t) == foldedType(contentType) })
}

// fetch makes one attempt.
func (c *Client) fetch(ctx context.Context, a Attachment, limits AttachmentLimits, attempt int) (io.ReadCloser, *APIError) {
	most := limits.MaxBytes
	if a.Size != nil {
		most = *a.Size
	}
	answer, err := c.http.Foreign(ctx, foreignRequest(opOpenAttachment, "GET", secret.New(a.URL), attempt, transferTime(most)))
	if err != nil {
		return nil, attachmentFailed(ErrUnreachable, err)
	}
	kind, cause := classifyForeign(answer, nil, ErrAttachmentExpired)
	if kind == ErrInvalid {
		head, _ := readHead(answer) // a refusal is one whatever else it says
		kind, cause = classifyForeign(answer, head, ErrAttachmentExpired)
	}
	if kind == nil {
		kind, cause = judgeAttachment(a, limits, answer)
	}
	if kind != nil {
		_ = answer.Body.Close() // nothing of it is used
		e := attachmentFailed(kind, cause)
		e.StatusCode, e.RetryAfter = answer.Status, httpx.RetryAfter(answer.Header, answer.At)
		return nil, e
	}
	return &attachmentBody{source: answer.Body, advertised: a.Size, most: most, status: answer.Status}, nil
}

var (
	errNotWhole = errors.New("the answer is not the whole file as it is")
	errTypes    = errors.New("the answer is of another type")
)

// judgeAttachment compares the head of a good answer with what was advertised and what is allowed.
func judgeAttachment(a Attachment, limits AttachmentLimits, answer *httpx.ForeignAnswer) (kind, cause error) {
	encoding := strings.ToLower(answer.Header.Get("Content-Encoding"))
	if answer.Status != 200 || encoding != "" && encoding != "identity" {
		return ErrMalformedResponse, errNotWhole
	}
	switch told := mediaType(&httpx.Answer{Header: answer.Header}); {
	case a.ContentType == "" && !limits.allows(told):
		return ErrAttachmentType, errTypes
	case a.ContentType != "" && !sameType(a.ContentType, told):
		return ErrAttachmentType, errTypes
	}
	switch length := answer.Length; {
	case length < 0: // to be counted
	case length > limits.MaxBytes:
		return ErrAttachmentSize, fmt.Errorf("the answer has %d bytes, at most %d are allowed", length, limits.MaxBytes)
	case a.Size != nil && length != *a.Size:
		return ErrAttachmentSize, fmt.Errorf("the answer has %d bytes, advertised were %d", length, *a.Size)
	}
	return nil, nil
}

// foldedType is a MIME type without parameters, in one spelling.
func foldedType(t string) string {
	t, _, _ = strings.Cut(t, ";")
	if t = strings.ToLower(strings.TrimSpace(t)); t == "image/jpg" {
		return "image/jpeg"
	}
	return t
}

// sameType reports whether a storage service's word may be the advertised type: many say of
// all files that they are bytes, and of texts that they are plain.
func sameType(advertised, told string) bool {
	advertised, told = foldedType(advertised), foldedType(told)
	switch told {
	case "", "application/octet-stream", "binary/octet-stream", advertised:
		return true
	case "text/plain":
		return strings.HasPrefix(advertised, "text/")
	}
	return false
}

// An attachmentBody counts a file's bytes as they come.
type attachmentBody struct {
	source     io.ReadCloser
	advertised *int64
	most, read int64
	status     int
	fault      error
}

func (b *attachmentBody) Read(p []byte) (int, error) {
	if b.fault != nil || len(p) == 0 {
		return 0, b.fault
	}
	if int64(len(p)) > b.most-b.read {
		p = p[:b.most-b.read+1] // one more tells that there is more
	}
	n, err := b.source.Read(p)
	b.read += int64(n)
	switch {
	case b.read > b.most:
		n -= int(b.read - b.most)
		err = b.failed(ErrAttachmentSize, fmt.Errorf("it goes on after %d bytes", b.most))
	case err == io.EOF && b.advertised != nil && b.read < *b.advertised:
		err = b.failed(ErrAttachmentSize, fmt.Errorf("it ends after %d of %d bytes", b.read, *b.advertised))
	case err != nil && err != io.EOF:
		err = b.failed(ErrUnreachable, err)
	}
	b.fault = err
	return n, err
}

func (b *attachmentBody) Close() error { return b.source.Close() }

func (b *attachmentBody) failed(kind, cause error) error {
	e := attachmentFailed(kind, cause)
	e.StatusCode = b.status
	return e
}

func attachmentFailed(kind, cause error) *APIError {
	return &APIError{Op: opOpenAttachment.name, Kind: kind, Err: cause}
}
