package agentjob

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
)

// kinds are all that an answer can be besides a success.
var kinds = []error{
	ErrUnauthorized, ErrForbidden, ErrRateLimited, ErrConflict, ErrNotFound, ErrInvalid, ErrUnavailable, ErrMalformedResponse,
	ErrRegistrationDisabled, ErrRegistrationBusy, ErrRegistrationUnavailable,
}

// Whatever comes as an answer is a success or one of the kinds, and its error is one safe line.
func FuzzAnswer(f *testing.F) {
	f.Add(uint16(200), "application/json", "", `{"ok":true}`, "The answer to everything")
	f.Add(uint16(503), "text/html", "120", "<html>", "x")
	f.Add(uint16(409), "", "Mon, 01 Jan 2035 00:00:00 GMT", `{"error":{"message":"late: The answer to everything"}}`, "The answer to everything")
	f.Add(uint16(429), "application/json", "1e999", `{"error":"per-ip limit, ak_EXAMPLE_KEY","data":[]}`, "")
	f.Add(uint16(307), "x/y;", "-1", "\x1b[31m\u202e", "\xff")
	f.Add(uint16(0), "application/problem+json", "NaN", `{"ok":false}`, "{}")
	const key = "ak_EXAMPLE_KEY"
	client := &Client{key: secret.New(key)}
	f.Fuzz(func(t *testing.T, status uint16, contentType, retryAfter, body, chat string) {
		a := &httpx.Answer{
			Status: int(status), Body: []byte(body), At: time.Now(),
			Header: http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}},
		}
		for _, op := range []operation{opRespond, opRegister} {
			in := inquiry{op: op, taskID: "t-1", chat: chat, private: "idempotency-key"}
			receipt, e := judgeAnswer(client, in, a, func(a *httpx.Answer) ([]byte, error) { return decodeReceipt(a, "t-1") })
			if e == nil {
				if status < 200 || status > 299 || isHTML(a) {
					t.Fatalf("%d %q is a success", status, body)
				}
				continue
			}
			if receipt != nil {
				t.Fatal("a result and an error")
			}
			if op.name == opRegister.name {
				refineRegistrationError(e, a.At)
			}
			if !slices.Contains(kinds, e.Kind) || !errors.Is(e, e.Kind) {
				t.Fatalf("kind %v", e.Kind)
			}
			if refused := errors.Is(e, ErrUnauthorized); refused != (status == http.StatusUnauthorized) {
				t.Fatalf("%d: the key is refused: %v", status, refused)
			}
			if refusal(e) && (status < 400 || status > 499) {
				t.Fatalf("%d ends a task for good: %v", status, e)
			}
			if e.RetryAfter < 0 || e.RetryAfter > 365*24*time.Hour {
				t.Fatalf("RetryAfter %v", e.RetryAfter)
			}
			for _, text := range []string{e.Error(), SafeText(e)} {
				if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("not one plain line: %q", text)
				}
				if strings.Contains(text, key) {
					t.Fatalf("the key is in %q", text)
				}
			}
			if e.Message != withheld && quotes(e.Message, chat) {
				t.Fatalf("message %q quotes %q", e.Message, chat)
			}
		}
	})
}

// Values of JSON are read as what they can be, or not at all.
func FuzzLooseValues(f *testing.F) {
	for _, seed := range []string{
		`null`, `0`, `-1`, `1.5`, `1e300`, `NaN`, `"x"`, `""`, `"7"`, `true`, `"False"`, `[]`, `[1]`, `{}`, `{"a":{}}`, `1794219630`, `1794219630123`,
		`"2026-11-09T10:20:30.5+23:59"`, `"9999-12-31T23:59:59-00:01"`, `"0000-01-01T00:00:00Z"`, `0.01`, `"0.010000"`, ` 12`, "\"\xff\"", `99999999999999999999`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if at, ok := readTime(raw); ok {
			text, err := at.MarshalJSON()
			if err != nil {
				t.Fatalf("readTime(%q) = %v, which can't be written: %v", raw, at, err)
			}
			if again, ok := readTime(text); !ok || !again.Equal(at) {
				t.Fatalf("readTime(%q) = %v, written and read again %v", raw, at, again)
			}
		}
		if n, ok := readSize(raw); ok && n < 0 {
			t.Fatalf("readSize(%q) = %d", raw, n)
		}
		text, ok := readText(raw)
		if ok == (text == "") {
			t.Fatalf("readText(%q) = %q, %v", raw, text, ok)
		}
		if _, ok := readString(raw); ok && vacant(raw) {
			t.Fatalf("%q is a text and says nothing", raw)
		}
		if amount, ok := readAmount(raw); ok {
			if again, ok := readAmount([]byte(`"` + amount.String() + `"`)); !ok || again != amount {
				t.Fatalf("readAmount(%q) = %v, written and read again %v", raw, amount, again)
			}
		}
		readFlag(raw)
		decodeMessage(raw)
	})
}
