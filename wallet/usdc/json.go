package usdc

import "encoding/json"

// MarshalText writes what [Amount.String] does.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what [Parse] does and leaves a alone on an error.
func (a *Amount) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// MarshalJSON writes a JSON string: "0.01".
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(`"` + a.String() + `"`), nil }

// UnmarshalJSON reads a JSON string that [Parse] accepts and refuses all else. encoding/json sets
// a *Amount to nil for null without calling this; an Amount refuses null, since
// absent money is not zero.
func (a *Amount) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '"' {
		return &SyntaxError{`want a JSON string such as "0.01"`}
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return &SyntaxError{"not valid JSON"}
	}
	return a.UnmarshalText([]byte(text))
}
