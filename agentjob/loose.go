package agentjob

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// fields is a JSON object that is read field by field. Each reader takes the first of
// several names whose value fits: a field of the wrong type is as if absent, so that
// one surprise does not cost a claimed task. Names are exact.
type fields []member

type member struct {
	name  string
	value json.RawMessage
}

// get returns the value of a name, the last one if there are several.
func (f fields) get(name string) (value json.RawMessage, has bool) {
	for _, m := range slices.Backward(f) {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// says reports whether a name has a value that is not vacant.
func (f fields) says(name string) bool {
	value, _ := f.get(name)
	return !vacant(value)
}

// parseFields reads a text of which nothing is known yet, and reports whether it is an object. What
// is inside of it is valid and is read with splitObject.
func parseFields(raw json.RawMessage) (fields, bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	return splitObject(raw)
}

// first returns the first value that read accepts.
func first[T any](f fields, names []string, read func(json.RawMessage) (T, bool)) (value T, ok bool) {
	for _, name := range names {
		if raw, has := f.get(name); has {
			if value, ok = read(raw); ok {
				return value, true
			}
		}
	}
	var none T
	return none, false
}

// text reads a non-empty string, or a whole number as its digits.
func (f fields) text(names ...string) string {
	value, _ := first(f, names, readText)
	return value
}

// str reads a non-empty string.
func (f fields) str(names ...string) string {
	value, _ := first(f, names, readString)
	return value
}

// object reads an object.
func (f fields) object(names ...string) fields {
	value, _ := first(f, names, splitObject)
	return value
}

// list reads an array, possibly empty; nil stands for absent.
func (f fields) list(names ...string) []json.RawMessage {
	value, _ := first(f, names, splitArray)
	return value
}

// flag reads a boolean; nil stands for unknown.
func (f fields) flag(names ...string) *bool {
	if value, ok := first(f, names, readFlag); ok {
		return &value
	}
	return nil
}

// size reads a whole number that is not negative; nil stands for unknown.
func (f fields) size(names ...string) *int64 {
	if value, ok := first(f, names, readSize); ok {
		return &value
	}
	return nil
}

// moment reads a time; the zero time stands for unknown.
func (f fields) moment(names ...string) time.Time {
	value, _ := first(f, names, readTime)
	return value
}

func readString(raw json.RawMessage) (value string, ok bool) {
	if value, ok := plainString(raw); ok {
		return value, value != ""
	}
	err := json.Unmarshal(raw, &value)
	return value, err == nil && value != ""
}

// readText also reads a number without a fraction or an exponent.
func readText(raw json.RawMessage) (string, bool) {
	if digits := strings.TrimPrefix(string(raw), "-"); digits != "" && strings.Trim(digits, "0123456789") == "" {
		return string(raw), true
	}
	return readString(raw)
}

func readFlag(raw json.RawMessage) (value, ok bool) {
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	return false, false
}

func readSize(raw json.RawMessage) (int64, bool) {
	text, _ := readText(raw)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}

// milliseconds is from where on a number counts them: as seconds it would be the year
// 5138, as milliseconds it is 1973.
const milliseconds = 1e11

// readTime reads an ISO 8601 string with a zone, or seconds or milliseconds since
// 1970 as a number or a string. 0 is "never set", not 1970. Times that can't be
// written as JSON again are none.
func readTime(raw json.RawMessage) (time.Time, bool) {
	text, ok := readString(raw)
	if ok {
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			t = t.UTC() // whose year may be one more
			return t, t.Year() >= 1970 && t.Year() <= 9999
		}
	} else {
		text = string(raw)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return time.Time{}, false
	}
	if n < milliseconds {
		n *= 1000
	}
	if n > 253402300799999 { // the end of the year 9999
		return time.Time{}, false
	}
	return time.UnixMilli(int64(math.Round(n))).UTC(), true
}

// vacant reports a value that says "nothing": null, false, and what is empty.
func vacant(raw json.RawMessage) bool {
	switch raw = bytes.TrimSpace(raw); string(raw) {
	case "", "null", "false", `""`:
		return true
	}
	if list, ok := splitArray(raw); ok {
		return len(list) == 0
	}
	f, ok := splitObject(raw)
	return ok && len(f) == 0
}

// readAmount reads USDC as a number or a string.
func readAmount(raw json.RawMessage) (usdc.Amount, bool) {
	amount, err := usdc.ParseLoose(raw)
	return amount, err == nil
}
