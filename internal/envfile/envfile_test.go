package envfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for text, want := range map[string][]Variable{
		"":                                  nil,
		"A=1":                               {{"A", "1", 1}},
		"A=":                                {{"A", "", 1}},
		"# x\n\n  A = 1  \r\nB=2\n":         {{"A", "1", 3}, {"B", "2", 4}},
		"\uFEFFA=1":                         {{"A", "1", 1}},
		"export A=1":                        {{"A", "1", 1}},
		"A=x # comment":                     {{"A", "x", 1}},
		"A=\"x # no\" # yes":                {{"A", "x # no", 1}},
		"A='$HOME ${X} \\n'":                {{"A", `$HOME ${X} \n`, 1}},
		"A=pa$$word$HOME":                   {{"A", "pa$$word$HOME", 1}},
		"A=\"one\\ntwo\"":                   {{"A", "one\ntwo", 1}},
		"A=`a\"b'c`":                        {{"A", `a"b'c`, 1}},
		"A=\"one\ntwo\"\nB=1":               {{"A", "one\ntwo", 1}, {"B", "1", 3}},
		"A=x=y==":                           {{"A", "x=y==", 1}},
		"A=<AgentJob provider key>":         {{"A", "<AgentJob provider key>", 1}},
		"A=\"one\r\ntwo\"":                  {{"A", "one\ntwo", 1}},
		"#A=\"not closed\nB=2 # and 'quote": {{"B", "2", 2}},
	} {
		got, err := Parse(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
}

func TestErrorsTellTheLineAndNoValue(t *testing.T) {
	const canary = "CANARY"
	for text, want := range map[string]string{
		"A=1\n" + canary:                      "line 2: it is no NAME=value",
		"A=1\n\nA=" + canary:                  "line 3: A is set again, after line 1",
		canary + " X=1":                       "line 1: what stands before = is no name",
		"1A=" + canary:                        "line 1: what stands before",
		"=" + canary:                          "line 1: what stands before",
		"A=1\nB=\"" + canary:                  "line 2: the value of B begins with a quote that is not closed",
		"B=\"x\"" + canary:                    "line 1: something follows the closing quote of B",
		"A=1\x00" + canary:                    "not UTF-8",
		"A=\xff" + canary:                     "not UTF-8",
		"A=\"1\n2\n3\"\nB=\"" + canary + "\n": "line 4: the value of B",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, "%q", text)
		require.NotContains(t, err.Error(), canary)
	}
}

func TestQuote(t *testing.T) {
	for _, value := range []string{"", "x", " x ", "a#b", `a"b`, "a'b", "a`b", "a\nb", `a\nb`, "$x", "é"} {
		text, ok := Quote(value)
		require.True(t, ok, "%q", value)
		got, err := Parse("X=" + text)
		require.NoError(t, err)
		require.Equal(t, []Variable{{"X", value, 1}}, got)
	}
	_, ok := Quote("\"'` #")
	require.False(t, ok)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"A=1\nB=\"2\n3\" # c\n", "export A='x'", "A=`\"'`", "=\n", "A", "\uFEFFA=\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := Parse(text)
		if err != nil {
			return
		}
		last := 0
		var again strings.Builder
		for _, v := range found {
			require.Greater(t, v.Line, last)
			last = v.Line
			quoted, ok := Quote(v.Value)
			if !ok {
				return
			}
			again.WriteString(v.Name + "=" + quoted + "\n")
		}
		same, err := Parse(again.String())
		require.NoError(t, err)
		require.Len(t, same, len(found))
		for i := range same {
			require.Equal(t, found[i].Value, same[i].Value)
		}
	})
}
