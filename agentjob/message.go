package agentjob

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

const (
	maxMessage  = 200      // runes
	maxScanned  = 16 << 10 // bytes of a text that are looked at
	quoteLength = 12       // runes in a row that make a quotation

	withheld = "(message withheld: it quotes the reply)"
)

// message is what a failed answer says, fit for errors and logs: one short line
// without keys, signatures and chat text.
func message(a *httpx.Answer, in inquiry, key string) string {
	text := errorText(a.Body)
	// Plain text is better than nothing. JSON of another shape may be anything: a
	// task, a new key.
	if text == "" && !isHTML(a) && !meansJSON(a) {
		text = string(a.Body)
	}
	if len(text) > maxScanned {
		text = text[:maxScanned]
	}
	text = plain(text)
	for _, secret := range []string{key, in.private} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	text = cut(httpx.Redact(text), maxMessage)
	chat := in.chat
	if in.reply {
		chat = replyText(in.body) // only now: few answers are failures
	}
	if quotes(text, chat) {
		return withheld
	}
	return text
}

// plain returns text in one line, without control and formatting characters.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// cut returns at most n runes.
func cut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-1]) + "…"
}

// quotes reports whether text repeats twelve characters in a row of chat, as they are
// or with other spaces, punctuation, case or the escapes of JSON. A chat text that is
// shorter must be there whole.
func quotes(text, chat string) bool {
	for _, text := range []string{text, unescape(text)} {
		for _, form := range []func(string) []rune{folded, letters} {
			if repeats(form(text), form(chat)) {
				return true
			}
		}
	}
	return false
}

func repeats(needle, hay []rune) bool {
	n := min(quoteLength, len(hay))
	if n == 0 {
		return false
	}
	whole := string(hay)
	for i := 0; i+n <= len(needle); i++ {
		if strings.Contains(whole, string(needle[i:i+n])) {
			return true
		}
	}
	return false
}

func folded(text string) []rune { return []rune(strings.ToLower(plain(text))) }

func letters(text string) []rune {
	return []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text))
}

var escapes = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// unescape undoes JSON's escapes; those of spaces and punctuation become a space.
func unescape(text string) string {
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		if code, err := strconv.ParseUint(strings.TrimPrefix(escape, `\u`), 16, 16); err == nil {
			return string(rune(code))
		}
		return " "
	})
}
