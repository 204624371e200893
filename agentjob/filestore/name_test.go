package filestore

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	for id, want := range map[string]string{
		"9c1f0a52-6b7e-4d9e-8a55-0e2f8c1d7b34": "9c1f0a52-6b7e-4d9e-8a55-0e2f8c1d7b34",
		"agent_1":                              "agent_1",
		"Agent":                                "%41gent",
		"a/b":                                  "a%2fb",
		"..":                                   "%2e%2e",
		"-rf":                                  "%2drf",
		"%41":                                  "%2541",
		"con":                                  "%63on",
		"com1":                                 "%63om1",
		"lpt9":                                 "%6cpt9",
		"com10":                                "com10",
		"nul.txt":                              "nul%2etxt",
		"é":                                    "%c3%a9",
		"\xff\x00":                             "%ff%00",
		strings.Repeat("x", 100):               strings.Repeat("x", 100),
		strings.Repeat("x", 101):               strings.Repeat("x", 32),
	} {
		if len(id) > 100 {
			assert.Regexp(t, `^x{32}~[0-9a-f]{64}$`, name(id))
			continue
		}
		assert.Equal(t, want, name(id))
	}
}

// Names are safe on every file system, and different where upper and lower case are not.
func TestNamesAreSafeAndDifferent(t *testing.T) {
	safe := regexp.MustCompile(`^[a-z0-9_%~][a-z0-9_%~-]{0,254}$`)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Custom(func(t *rapid.T) string {
			if rapid.Bool().Draw(t, "bytes") {
				return string(rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "id"))
			}
			return rapid.StringMatching(`[aA%41.-]{1,6}|x{99,102}|(com|lpt)[0-9]?|nul`).Draw(t, "id")
		})
		one, other := id.Draw(t, "one"), id.Draw(t, "other")
		if !safe.MatchString(name(one)) || isDevice(name(one)) {
			t.Fatalf("the name of %q is %q", one, name(one))
		}
		if one != other && strings.EqualFold(name(one), name(other)) {
			t.Fatalf("%q and %q share the name %q", one, other, name(one))
		}
	})
}
