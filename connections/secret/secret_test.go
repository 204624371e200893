package secret_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

const canary = "ak_EXAMPLE_canary_0123456789"

// A holder hides secrets from the methods that fmt would call, in every way a struct can.
type holder struct {
	Name    string
	Public  secret.Secret
	private secret.Secret
	pointer *secret.Secret
	list    []secret.Secret
	byName  map[string]secret.Secret
	any     any
	nested  *holder
	key     secret.Key
	sealer  *secret.Sealer
}

func newHolder(t *testing.T, key secret.Key) *holder {
	s := secret.New(canary)
	sealer, err := secret.NewSealer(t.Context(), keys(key))
	require.NoError(t, err)
	h := &holder{
		Name: "visible", Public: s, private: s, pointer: &s, list: []secret.Secret{s},
		byName: map[string]secret.Secret{"k": s}, any: s, key: key, sealer: sealer,
	}
	inner := *h
	h.nested = &inner
	return h
}

func keys(keys ...secret.Key) secret.KeySource {
	return secret.KeyFunc(func(context.Context) ([]secret.Key, error) { return keys, nil })
}

// failureText returns what a failing assertion prints.
type failureText struct{ bytes.Buffer }

func (f *failureText) Errorf(format string, args ...any) { fmt.Fprintf(f, format, args...) }

func TestNothingPrintsASecret(t *testing.T) {
	key := secret.NewKey()
	h, s := newHolder(t, key), secret.New(canary)
	var out bytes.Buffer

	values := []any{s, &s, h, *h, []any{s, h}, map[string]any{"s": s, "h": h}, &h, key, &key, struct{ k secret.Key }{key}}
	for _, verb := range strings.Split("v +v #v s q x X d p T b o t e U c +s #s #q #x", " ") {
		for _, value := range values {
			fmt.Fprintf(&out, "%"+verb+"\n", value)
		}
	}
	fmt.Fprintln(&out, values...)
	for _, value := range values {
		if text, err := json.Marshal(value); err == nil {
			out.Write(text)
		}
		if text, err := xml.Marshal(value); err == nil {
			out.Write(text)
		}
		var stream bytes.Buffer
		fmt.Fprintln(&out, gob.NewEncoder(&stream).Encode(value))
		out.Write(stream.Bytes())
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(handler)
		for _, value := range values {
			log.Info("message", "value", value)
		}
		log.With("s", s).WithGroup("g").Info("message", "key", key)
	}
	var failures failureText
	other := newHolder(t, secret.NewKey())
	assert.Equal(&failures, h, other)
	assert.Equal(&failures, *h, *other)
	assert.Equal(&failures, s, secret.New("another"))
	assert.Empty(&failures, h)
	assert.ElementsMatch(&failures, []any{s, h, key}, []any{other})
	require.Contains(t, failures.String(), "visible", "the assertions did not print the structs")
	out.Write(failures.Bytes())
	fmt.Fprintln(&out, fmt.Errorf("calling with %v: %w", s, errors.New("x")))

	text := out.String()
	require.Contains(t, text, "[redacted]")
	require.Contains(t, text, key.ID())
	raw := key.Reveal()
	for name, forbidden := range map[string]string{
		"secret":           canary,
		"secret in hex":    fmt.Sprintf("%x", canary),
		"secret in HEX":    fmt.Sprintf("%X", canary),
		"secret as bytes":  strings.Trim(fmt.Sprint([]byte(canary)), "[]"),
		"key":              raw,
		"key's first half": raw[:20],
	} {
		assert.NotContains(t, text, forbidden, name)
	}
}

func TestSecretEncodesAsRedacted(t *testing.T) {
	s := secret.New(canary)
	text, err := json.Marshal(map[string]secret.Secret{"key": s})
	require.NoError(t, err)
	assert.JSONEq(t, `{"key":"[redacted]"}`, string(text))
	assert.Equal(t, "[redacted]", fmt.Sprintf("%50s", s))
	//lint:ignore SA9005 that it refuses is what is tested
	assert.Error(t, json.Unmarshal([]byte(`"[redacted]"`), &s), "decoding would make the word the secret")
}

func TestSecretValue(t *testing.T) {
	s := secret.New(canary)
	assert.Equal(t, canary, s.Reveal())
	assert.False(t, s.IsZero())
	assert.True(t, s.Equal(secret.New(canary)))
	assert.False(t, s.Equal(secret.New(canary+"x")))
	assert.False(t, s.Equal(secret.Secret{}))

	for _, none := range []secret.Secret{{}, secret.New("")} {
		assert.True(t, none.IsZero())
		assert.Empty(t, none.Reveal())
		assert.True(t, none.Equal(secret.Secret{}))
		assert.Equal(t, "[redacted]", none.String())
	}
}

func TestFromEnv(t *testing.T) {
	const name = "SECRET_TEST_VALUE"
	_, err := secret.FromEnv(name)
	require.ErrorContains(t, err, name+" is not set")
	for _, blank := range []string{"", " ", "\n", "\t\r\n"} {
		t.Setenv(name, blank)
		_, err := secret.FromEnv(name)
		require.ErrorContains(t, err, name+" is blank")
	}
	for value, want := range map[string]string{
		canary: canary, canary + "\n": canary, canary + "\r\n": canary,
		canary + "\n\n": canary + "\n", " " + canary: " " + canary,
	} {
		t.Setenv(name, value)
		got, err := secret.FromEnv(name)
		require.NoError(t, err)
		assert.Equal(t, want, got.Reveal())
	}
}
