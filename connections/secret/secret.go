package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

const redacted = "[redacted]"

// A Secret is a string that doesn't print. The zero value is no secret. It is
// immutable and safe for concurrent use.
//
// Secrets can't be compared with ==; use [Secret.Equal]. For the same reason
// reflect.DeepEqual finds two of them different, unless both are zero.
type Secret struct {
	// Printers that walk through unexported fields by reflection see the
	// address of a function, and not what it captures.
	reveal func() string
}

var _ interface {
	fmt.Formatter
	fmt.Stringer
	fmt.GoStringer
	slog.LogValuer
	json.Marshaler
} = Secret{}

// New returns a Secret of the value; of "" the zero Secret.
func New(value string) Secret {
	if value == "" {
		return Secret{}
	}
	value = strings.Clone(value) // don't keep a whole file for one line of it
	return Secret{reveal: func() string { return value }}
}

// FromEnv returns the environment variable's value without one line end at its end.
// A variable that is unset or blank is an error, which names it.
func FromEnv(name string) (Secret, error) {
	value, ok := os.LookupEnv(name)
	if !ok {
		return Secret{}, fmt.Errorf("the environment variable %s is not set", name)
	}
	value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	if strings.TrimSpace(value) == "" {
		return Secret{}, fmt.Errorf("the environment variable %s is blank", name)
	}
	return New(value), nil
}

// Reveal returns the value. Call it where the value is put on the wire or in a private file.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether there is no value.
func (s Secret) IsZero() bool { return s.reveal == nil }

// Equal reports whether both have the same value, in a time that depends on
// neither's content.
func (s Secret) Equal(other Secret) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(other.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String returns "[redacted]".
func (Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (Secret) GoString() string { return redacted }

// Format writes "[redacted]" for every verb and flag.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON returns the JSON string "[redacted]".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns "[redacted]".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
