package httpx

import (
	"strings"
	"testing"
)

// Of a text with a secret at any place, the secret is gone, and redacting again changes nothing.
func FuzzRedact(f *testing.F) {
	f.Add("", "")
	f.Add("GET https://h/p?", " failed")
	f.Add("://user:", "@h/x#y")
	f.Add("Authorization: Bearer ", "; next")
	f.Add("\xff?a=", "\"'<>")
	f.Fuzz(func(t *testing.T, before, after string) {
		const key = "ak_CANARY-key_1"
		text := Redact(before + key + after)
		if strings.Contains(text, "CANARY") {
			t.Fatalf("the key is in %q", text)
		}
		if again := Redact(text); again != text {
			t.Fatalf("%q, again %q", text, again)
		}
		if signed := Redact("see https://h/f?sig=CANARY " + after); strings.Contains(signed, "CANARY") && !strings.Contains(after, "CANARY") {
			t.Fatalf("the signature is in %q", signed)
		}
	})
}
