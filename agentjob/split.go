package agentjob

import "encoding/json"

// splitObject returns the members of an object, each value as it stands in the text and
// not copied. The text must be valid JSON; what it says of other text means nothing. It reports
// whether the text is an object. json.Unmarshal into a map does much the same, three times slower,
// and checks again at every depth what was checked at the top.
func splitObject(valid json.RawMessage) (fields, bool) {
	s := splitter{text: valid}
	if !s.open('{') {
		return nil, false
	}
	f := fields{}
	for s.next('}') {
		name := s.value()
		s.next(':')
		key, ok := plainString(name)
		if !ok && json.Unmarshal(name, &key) != nil {
			return nil, false
		}
		f = append(f, member{key, s.value()})
	}
	return f, true
}

// splitArray does the same with the elements of an array.
func splitArray(valid json.RawMessage) ([]json.RawMessage, bool) {
	s := splitter{text: valid}
	if !s.open('[') {
		return nil, false
	}
	list := []json.RawMessage{}
	for s.next(']') {
		list = append(list, s.value())
	}
	return list, true
}

// plainString returns a string without escapes and letters that are not ASCII.
func plainString(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	for _, c := range raw {
		if c < ' ' || c > '~' || c == '\\' || c == '"' {
			return "", false
		}
	}
	return string(raw), true
}

// A splitter walks over valid JSON.
type splitter struct {
	text []byte
	at   int
}

// open passes the first character, if it is this one.
func (s *splitter) open(bracket byte) bool {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != bracket {
		return false
	}
	s.at++
	return true
}

// next passes what stands before a value. It reports false at the end, or at this bracket.
func (s *splitter) next(bracket byte) bool {
	for s.space(); s.at < len(s.text); s.space() {
		switch c := s.text[s.at]; c {
		case ',', ':':
			s.at++
		default:
			return c != bracket
		}
	}
	return false
}

func (s *splitter) space() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
		default:
			return
		}
	}
}

// value passes a value and returns its text.
func (s *splitter) value() json.RawMessage {
	start, depth := s.at, 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.string()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\r', '\n':
			s.at++ // inside of it: outside, the value would have ended before
		default:
			s.scalar()
		}
		if depth <= 0 {
			break
		}
	}
	return s.text[start:s.at:s.at]
}

// string passes a string.
func (s *splitter) string() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// scalar passes a number, true, false or null.
func (s *splitter) scalar() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ',', ':', ']', '}', ' ', '\t', '\r', '\n':
			return
		}
	}
}
