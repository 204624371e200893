package envfile

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Variable is one assignment.
type Variable struct {
	Name, Value string
	Line        int // where its name is
}

// A SyntaxError is a line that can't be read. It does not quote it, which may hold a secret.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

var (
	name  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	blank = " \t\r"
)

// Parse returns the variables in the order of the file. A name that is assigned twice is an error: which
// one counts differs between readers.
func Parse(text string) ([]Variable, error) {
	text = strings.TrimPrefix(text, "\uFEFF")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, &SyntaxError{1, "the file is not UTF-8 text: save it as that"}
	}
	var found []Variable
	seen := map[string]int{}
	for line := 1; text != ""; {
		var v *Variable
		var used int
		var err error
		v, text, used, err = next(text, line)
		if err != nil {
			return nil, err
		}
		if v != nil {
			if first := seen[v.Name]; first != 0 {
				return nil, &SyntaxError{line, fmt.Sprintf("%s is set again, after line %d: keep one", v.Name, first)}
			}
			seen[v.Name] = line
			found = append(found, *v)
		}
		line += used
	}
	return found, nil
}

// next reads one line, or more if a quoted value goes on. A comment or an empty line is no variable.
func next(text string, line int) (v *Variable, rest string, used int, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	trimmed := strings.Trim(first, blank)
	if trimmed == "" || trimmed[0] == '#' {
		return nil, rest, 1, nil
	}
	left, right, ok := strings.Cut(first, "=")
	if !ok {
		return nil, "", 0, &SyntaxError{line, "it is no NAME=value; a comment begins with #"}
	}
	id := strings.Trim(strings.TrimPrefix(strings.TrimLeft(left, blank), "export "), blank)
	if !name.MatchString(id) {
		return nil, "", 0, &SyntaxError{line, "what stands before = is no name of a variable (letters, digits and _)"}
	}
	value := strings.Trim(right, blank)
	if value == "" || !strings.ContainsRune(`"'`+"`", rune(value[0])) {
		return &Variable{id, unquoted(value), line}, rest, 1, nil
	}
	quoted := text[strings.Index(text, "=")+1:]
	quoted = quoted[strings.IndexByte(quoted, value[0])+1:]
	end := strings.IndexByte(quoted, value[0])
	if end < 0 {
		return nil, "", 0, &SyntaxError{line, fmt.Sprintf("the value of %s begins with a quote that is not closed", id)}
	}
	inside, after := quoted[:end], quoted[end+1:]
	tail, rest, _ := strings.Cut(after, "\n")
	if tail = strings.Trim(tail, blank); tail != "" && tail[0] != '#' {
		return nil, "", 0, &SyntaxError{line, fmt.Sprintf("something follows the closing quote of %s; use another kind of quote around it", id)}
	}
	used = 1 + strings.Count(inside, "\n")
	inside = strings.ReplaceAll(inside, "\r\n", "\n")
	if value[0] == '"' {
		inside = strings.ReplaceAll(inside, `\n`, "\n")
	}
	return &Variable{id, inside, line}, rest, used, nil
}

// unquoted drops a comment.
func unquoted(value string) string {
	value, _, _ = strings.Cut(value, "#")
	return strings.Trim(value, blank)
}

// Quote returns a value as it stands in a file so that Parse reads it again, or false if no kind
// of quote can hold it.
func Quote(value string) (string, bool) {
	for _, quote := range []string{"", `"`, "'", "`"} {
		if text := quote + value + quote; reads(text, value) {
			return text, true
		}
	}
	return "", false
}

func reads(text, value string) bool {
	found, err := Parse("X=" + text + "\n")
	return err == nil && len(found) == 1 && found[0].Value == value
}
