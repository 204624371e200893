package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

const (
	keySize   = 32
	keyIDSize = 8
)

// A Key seals and opens texts: 32 random bytes. It prints as its ID. The zero
// Key is none. It is immutable and safe for concurrent use.
type Key struct{ bytes Secret }

// NewKey returns a new random key.
func NewKey() Key {
	var b [keySize]byte
	rand.Read(b[:]) // never fails: it ends the program instead
	return Key{New(string(b[:]))}
}

// ParseKey reads the form that [Key.Reveal] writes. Errors don't show the text.
func ParseKey(text string) (Key, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != keySize {
		return Key{}, errors.New("a key is 32 bytes in base64, 44 characters")
	}
	return Key{New(string(b))}, nil
}

// Reveal returns the key in base64, for a private file.
func (k Key) Reveal() string { return base64.StdEncoding.EncodeToString([]byte(k.bytes.Reveal())) }

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k.bytes.IsZero() }

// ID returns 16 hexadecimal digits, derived from the key and safe to show.
// Each sealed text names the key that sealed it by it.
func (k Key) ID() string {
	id := k.id()
	return hex.EncodeToString(id[:])
}

func (k Key) id() [keyIDSize]byte {
	sum := sha256.Sum256([]byte("agentjob sealing key id\x00" + k.bytes.Reveal()))
	return [keyIDSize]byte(sum[:])
}

// String returns a text with the ID.
func (k Key) String() string {
	if k.IsZero() {
		return "no key"
	}
	return "key " + k.ID()
}

// GoString returns what String does.
func (k Key) GoString() string { return k.String() }

// Format writes what String returns, for every verb and flag.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// MarshalText returns what String does; the key itself is not in it.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
