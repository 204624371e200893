package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

func newSealer(t testing.TB, k ...secret.Key) *secret.Sealer {
	sealer, err := secret.NewSealer(t.Context(), keys(k...))
	require.NoError(t, err)
	return sealer
}

func TestSealAndOpen(t *testing.T) {
	sealer := newSealer(t, secret.NewKey())
	for _, text := range [][]byte{nil, {}, []byte("x"), bytes.Repeat([]byte("long"), 1<<18)} {
		for _, place := range [][]byte{nil, []byte("record"), {0}} {
			sealed := sealer.Seal(text, place)
			got, err := sealer.Open(sealed, place)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(text, got))
			if len(text) > 1000 {
				assert.NotContains(t, string(sealed), string(text))
			}
			assert.NotEqual(t, sealed, sealer.Seal(text, place), "each has a nonce of its own")
		}
	}
}

func TestOpenRefusesEveryChange(t *testing.T) {
	key := secret.NewKey()
	sealer := newSealer(t, key)
	sealed := sealer.Seal([]byte("a text"), []byte("record 1"))
	refuse := func(what string, sealed, place []byte) {
		t.Helper()
		_, err := sealer.Open(sealed, place)
		if !errors.Is(err, secret.ErrTampered) && !errors.Is(err, secret.ErrKeyUnknown) {
			t.Errorf("%s: Open = %v, want ErrTampered or ErrKeyUnknown", what, err)
		}
	}
	for i := range sealed {
		for _, bit := range []byte{1, 0x80} {
			changed := bytes.Clone(sealed)
			changed[i] ^= bit
			refuse(fmt.Sprintf("byte %d changed", i), changed, []byte("record 1"))
		}
		refuse(fmt.Sprintf("cut to %d bytes", i), sealed[:i], []byte("record 1"))
	}
	refuse("longer", append(bytes.Clone(sealed), 0), []byte("record 1"))
	refuse("another record", sealed, []byte("record 2"))
	refuse("no record", sealed, nil)
	// The header's end and the record's start can't be taken for one another.
	refuse("shifted", sealed, append(bytes.Clone(sealed[8:9]), "record 1"...))

	_, err := sealer.Open(append([]byte{2}, sealed[1:]...), []byte("record 1"))
	require.ErrorContains(t, err, "version 2")
}

func TestRotation(t *testing.T) {
	older, newer := secret.NewKey(), secret.NewKey()
	sealed := newSealer(t, older).Seal([]byte("text"), nil)

	rotated := newSealer(t, newer, older)
	text, err := rotated.Open(sealed, nil)
	require.NoError(t, err)
	assert.Equal(t, "text", string(text))

	again := rotated.Seal(text, nil)
	_, err = newSealer(t, older).Open(again, nil)
	require.ErrorIs(t, err, secret.ErrKeyUnknown, "the first key seals")
	require.ErrorContains(t, err, newer.ID())
	_, err = newSealer(t, newer).Open(again, nil)
	require.NoError(t, err)
}

// What this release sealed must open for ever.
func TestOpenReadsTheFirstFormat(t *testing.T) {
	key, err := secret.ParseKey(base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef")))
	require.NoError(t, err)
	sealed, err := hex.DecodeString("015897aec2383e21c12a800cd8352cf628979e94ade00bf1705edba6f282ca40f57329765e0305acb959c0daaedd0502f7a6cfa1458e9498")
	require.NoError(t, err)
	text, err := newSealer(t, key).Open(sealed, []byte("record 7"))
	require.NoError(t, err)
	assert.Equal(t, "a text of version 1", string(text))
}

func TestNewSealerNeedsKeys(t *testing.T) {
	_, err := secret.NewSealer(t.Context(), nil)
	require.Error(t, err)
	_, err = secret.NewSealer(t.Context(), keys())
	require.ErrorContains(t, err, "no sealing key")
	_, err = secret.NewSealer(t.Context(), keys(secret.NewKey(), secret.Key{}))
	require.ErrorContains(t, err, "key 2")
}

func TestSealerIsSafeForConcurrentUse(t *testing.T) {
	sealer := newSealer(t, secret.NewKey())
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			place := fmt.Append(nil, i)
			for range 50 {
				text, err := sealer.Open(sealer.Seal(place, place), place)
				assert.NoError(t, err)
				assert.Equal(t, place, text)
			}
		})
	}
	all.Wait()
}

func FuzzOpen(f *testing.F) {
	sealer := newSealer(f, secret.NewKey())
	sealed := sealer.Seal([]byte("text"), []byte("place"))
	f.Add([]byte(nil), []byte(nil))
	f.Add(sealed, []byte("other"))
	f.Add(sealed[:9], []byte("place"))
	f.Add(append(bytes.Clone(sealed[:9]), 0, 0), []byte("place"))
	f.Fuzz(func(t *testing.T, data, place []byte) {
		if _, err := sealer.Open(data, place); !errors.Is(err, secret.ErrTampered) && !errors.Is(err, secret.ErrKeyUnknown) {
			t.Fatalf("Open of what was never sealed = %v", err)
		}
		text, err := sealer.Open(sealer.Seal(data, place), place)
		if err != nil || !bytes.Equal(text, data) {
			t.Fatalf("Open of what was sealed = %v", err)
		}
	})
}
