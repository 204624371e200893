package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
)

var (
	// ErrKeyUnknown: a text was sealed with a key that the KeySource doesn't supply.
	ErrKeyUnknown = errors.New("sealed with an unknown key")
	// ErrTampered: a sealed text was altered or cut, or belongs to another record.
	ErrTampered = errors.New("the sealed text was altered or belongs elsewhere")
)

// A sealed text is the header (the version, then the id of the key), a
// nonce, and what AES-256-GCM makes of the text.
const (
	sealVersion = 1
	headerSize  = 1 + keyIDSize
)

// A Sealer seals and opens texts. Make it with [NewSealer]. It is safe for concurrent use.
type Sealer struct {
	// A cipher's fields are its expanded key: like a Secret's value they are
	// captured, for printers that follow pointers.
	current [keyIDSize]byte
	cipher  func(id [keyIDSize]byte) cipher.AEAD // nil if the key is unknown
}

// NewSealer asks the source for its keys, once.
func NewSealer(ctx context.Context, source KeySource) (*Sealer, error) {
	if source == nil {
		return nil, errors.New("sealing needs a KeySource")
	}
	keys, err := source.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("getting the sealing keys: %w", err)
	}
	if len(keys) == 0 {
		return nil, errors.New("the KeySource returned no sealing key")
	}
	ciphers := map[[keyIDSize]byte]cipher.AEAD{}
	for i, key := range keys {
		if key.IsZero() {
			return nil, fmt.Errorf("the KeySource's key %d is a zero Key", i+1)
		}
		block, err := aes.NewCipher([]byte(key.bytes.Reveal()))
		if err != nil {
			return nil, fmt.Errorf("using %v: %w", key, err)
		}
		if ciphers[key.id()], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("using %v: %w", key, err)
		}
	}
	return &Sealer{
		current: keys[0].id(),
		cipher:  func(id [keyIDSize]byte) cipher.AEAD { return ciphers[id] },
	}, nil
}

// Seal returns the sealed text, about 37 bytes longer. Only the same associated data opens it.
func (s *Sealer) Seal(plaintext, associated []byte) []byte {
	aead := s.cipher(s.current)
	sealed := make([]byte, 0, headerSize+len(plaintext)+aead.Overhead())
	sealed = append(sealed, sealVersion)
	sealed = append(sealed, s.current[:]...)
	return aead.Seal(sealed, nil, plaintext, bind(sealed, associated))
}

// Open returns the text. The error matches [ErrKeyUnknown] or [ErrTampered].
func (s *Sealer) Open(sealed, associated []byte) ([]byte, error) {
	if len(sealed) < headerSize {
		return nil, fmt.Errorf("%w: it is too short", ErrTampered)
	}
	header, rest := sealed[:headerSize], sealed[headerSize:]
	if header[0] != sealVersion {
		return nil, fmt.Errorf("%w: its format is version %d, this release reads %d", ErrTampered, header[0], sealVersion)
	}
	id := [keyIDSize]byte(header[1:])
	aead := s.cipher(id)
	if aead == nil {
		return nil, fmt.Errorf("%w: key %x is not among the keys; add it after the first", ErrKeyUnknown, id)
	}
	plaintext, err := aead.Open(nil, nil, rest, bind(header, associated))
	if err != nil {
		return nil, ErrTampered // the cipher's own error says no more
	}
	return plaintext, nil
}

// bind joins the header, whose length is fixed, with the associated data.
func bind(header, associated []byte) []byte {
	return append(header[:headerSize:headerSize], associated...)
}
