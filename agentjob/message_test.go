package agentjob

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func apiError(t *testing.T, r httpmock.Responder, text string) *APIError {
	t.Helper()
	c, _ := mocked(t, r)
	_, err := c.once().Respond(t.Context(), "t-1", Response{Text: text})
	e, ok := errors.AsType[*APIError](err)
	require.True(t, ok)
	return e
}

func TestWhereTheMessageIsFound(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"Invalid or missing API key"}`:    "Invalid or missing API key",
		`{"error":{"code":7,"message":"too late"}}`: "too late",
		`{"message":"too late","error":null}`:       "too late",
		`{"error":{"code":7}}`:                      "", // JSON of another shape may be anything
		`upstream timed out`:                        "upstream timed out",
		`<html>secret page</html>`:                  "",
		``:                                          "",
		`{"error":"two\n\tlines\u0000 and\u202e a \u0007bell"}`: "two lines and a bell",
		`{"error":"see https://h/f?sig=S3CRET for ak_S3CRET"}`:  "see https://h/f?[redacted] for [redacted]",
		`{"error":"Bearer S3CRET and ak_EXAMPLE_KEY"}`:          "Bearer [redacted] and [redacted]",
		`{"error":"` + strings.Repeat("é ", 300) + `"}`:         strings.Repeat("é ", 99) + "é…",
		"\xff\xfebroken": "broken",
	} {
		e := apiError(t, reply(422, "", body), "Hi there, friend")
		assert.Equal(t, want, e.Message, body)
		assert.LessOrEqual(t, utf8.RuneCountInString(e.Message), maxMessage)
	}
}

func TestAMessageThatQuotesTheReplyIsWithheld(t *testing.T) {
	const text = "The patient's name is Erika Mustermann, born in 1970."
	for _, quote := range []string{
		text, "patient's name", "THE   PATIENT-S NAME", `Erika\nMustermann`, "nameiserikamust", "refused: name is Erika M",
		"is Erika Mus", `Erika \u004dustermann`,
	} {
		body, err := json.Marshal(map[string]string{"error": "Rejected because of: " + quote})
		require.NoError(t, err)
		e := apiError(t, reply(422, jsonType, string(body)), text)
		assert.Equal(t, withheld, e.Message, quote)
		assert.NotContains(t, e.Error(), "Erika")
	}
	assert.Equal(t, "the text is too long", apiError(t, reply(422, "", "the text is too long"), text).Message)
	assert.Equal(t, withheld, apiError(t, reply(422, "", "bad: PIN 4711!"), "pin 4711").Message, "short, and quoted whole")
	assert.Equal(t, withheld, apiError(t, reply(422, "", "bad: 🙈🙉"), "🙈🙉").Message)

	c, _ := mocked(t, reply(422, "", "bad message: Erika Mustermann"))
	err := c.ReportProgress(t.Context(), "t-1", ProgressReport{Seq: 1, Message: "Looking up Erika Mustermann"})
	assert.ErrorContains(t, err, withheld)
}

func TestAnErrorReadsAsASentence(t *testing.T) {
	for want, e := range map[string]*APIError{
		`agentjob: respond to task t-1: 409 conflict: the task is over: late, cancelled or answered otherwise: the platform says "Too late"; nothing more can be sent for it`: {
			Op: "respond", TaskID: "t-1", StatusCode: 409, Kind: ErrConflict, Message: "Too late",
		},
		`agentjob: read the progress of task "a\nb/\x00": 404 not found: not found; check the id, the key and the base URL`: {
			Op: "progress", TaskID: "a\nb/\x00", StatusCode: 404, Kind: ErrNotFound,
		},
		`agentjob: poll for a task: the platform could not be reached: EOF; check the network, the proxy and the base URL`: {
			Op: "poll", Kind: ErrUnreachable, Err: io.EOF,
		},
		`agentjob: send a heartbeat: 429 too many requests: rate limited; wait before the next request (it asks for 1h0m0s)`: {
			Op: "heartbeat", StatusCode: 429, Kind: ErrRateLimited, RetryAfter: time.Hour,
		},
		`agentjob: register: 429 too many requests: rate limited; wait before the next request (until 2026-11-10 00:00 UTC)`: {
			Op: "register", StatusCode: 429, Kind: ErrRateLimited, RetryAfter: time.Hour, ResetsAt: time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC),
		},
	} {
		assert.Equal(t, want, e.Error())
	}
	long := (&APIError{Op: "respond", TaskID: strings.Repeat("x", 5000), Kind: ErrConflict}).Error()
	assert.Less(t, len(long), 400)
}

func TestWhichErrorsMayPass(t *testing.T) {
	for kind, want := range map[error]bool{
		ErrUnauthorized: false, ErrForbidden: false, ErrConflict: false, ErrNotFound: false, ErrInvalid: false, ErrRegistrationDisabled: false,
		ErrRateLimited: true, ErrUnavailable: true, ErrMalformedResponse: true, ErrUnreachable: true, ErrRegistrationBusy: true, ErrRegistrationUnavailable: true,
	} {
		e := &APIError{Kind: kind, Err: io.EOF}
		assert.Equal(t, want, e.Retryable(), kind)
		assert.ErrorIs(t, e, kind)
		assert.ErrorIs(t, e, io.EOF)
	}
}

// TestNoErrorTellsASecret lets the platform throw back all that it was sent.
func TestNoErrorTellsASecret(t *testing.T) {
	echo := func(status int) httpmock.Responder {
		return func(r *http.Request) (*http.Response, error) {
			var body []byte
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
			}
			text, _ := json.Marshal(map[string]any{"ok": false, "error": r.Header.Get("Authorization") + " " + r.URL.String() + " " + string(body)})
			return httpmock.NewBytesResponse(status, text), nil
		}
	}
	for op, call := range calls {
		for _, status := range []int{200, 400, 401, 409, 429, 500, 503} {
			synctest.Test(t, func(t *testing.T) {
				c, _ := mocked(t, echo(status))
				err := call(t.Context(), c)
				require.Error(t, err)
				for _, word := range []string{"ak_EXAMPLE_KEY", "The answer to everything", "Halfway through", "wait=25", "PRIVATE-KEY-1"} {
					assert.NotContains(t, err.Error(), word, "%s %d", op, status)
				}
			})
		}
	}
}
