package systrace

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Call is one system call.
type Call struct {
	Line     int // of the trace, from 1, where it begins
	Thread   int
	Name     string
	Args     []string // as strace wrote them
	Ret      int64
	Errno    string // "" if it worked
	Injected bool   // the result was made up by strace, and the call was not executed
	Returned bool   // false if the trace ends before
}

// OK reports whether the call was executed and worked.
func (c *Call) OK() bool { return c.Returned && c.Errno == "" && c.Ret >= 0 && !c.Injected }

func (c *Call) String() string { return fmt.Sprintf("%s at line %d", c.Name, c.Line) }

func (c *Call) arg(i int) string {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

// Int returns an argument that is a number, such as a file descriptor.
func (c *Call) Int(i int) (int64, error) {
	n, err := strconv.ParseInt(c.arg(i), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: argument %d is %.40q, not a number", c, i, c.arg(i))
	}
	return n, nil
}

// Bytes returns an argument that is text or a buffer.
func (c *Call) Bytes(i int) ([]byte, error) {
	data, err := unquote(c.arg(i))
	if err != nil {
		return nil, fmt.Errorf("%s: argument %d: %w", c, i, err)
	}
	return data, nil
}

// Has reports whether an argument that is a set of flags has one of these.
func (c *Call) Has(i int, flags ...string) bool {
	for set := range strings.SplitSeq(c.arg(i), "|") {
		for _, flag := range flags {
			if set == flag {
				return true
			}
		}
	}
	return false
}

var errQuote = errors.New(`not in the form "\x00\x01" that -xx writes`)

func unquote(text string) ([]byte, error) {
	if strings.HasSuffix(text, "...") {
		return nil, errors.New("strace cut it off: record with a larger -s")
	}
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return nil, errQuote
	}
	text = text[1 : len(text)-1]
	if len(text)%4 != 0 || strings.Count(text, `\x`)*4 != len(text) {
		return nil, errQuote
	}
	data, err := hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
	if err != nil {
		return nil, errQuote
	}
	return data, nil
}

// splitArgs splits at the commas that are in no bracket. Text has none: it is all hexadecimal.
func splitArgs(text string) (args []string) {
	depth, start := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(text[start:i]))
				start = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		args = append(args, rest)
	}
	return args
}
