package usdc

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]Amount{
		"0": 0, "0.0": 0, "0.000000": 0, "5": 5 * One, "0.01": 10_000, "0.010000": 10_000, "0.000001": 1, "10": 10 * One,
		"100.50": 100*One + One/2, "18446744073709.551615": math.MaxUint64, "18446744073709": 18446744073709 * One,
	} {
		got, err := Parse(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
}

func TestParseRefuses(t *testing.T) {
	for s, reason := range map[string]string{
		"": "empty", "-1": "sign", "+1": "sign", "-0": "sign", "1e3": "digits", "1E-2": "digits", " 1": "digits", "1 ": "digits", "1\n": "digits",
		"1,000": "digits", "0,01": "digits", ".": "digits", ".5": "digits", "5.": "digits", "1.2.3": "digits", "1..2": "digits", "0x10": "digits", "1_000": "digits",
		"٣": "digits", "１": "digits", "NaN": "digits", "Inf": "digits", "$1": "digits", "1\x00": "digits", "1.5 USDC": "digits",
		"00": "leading zeros", "00.1": "leading zeros", "01": "leading zeros",
		"0.0000001": "6 decimals", "0.0000000": "6 decimals", "1.1234567": "6 decimals",
		strings.Repeat("1", maxLength+1): "longer",
	} {
		got, err := Parse(s)
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, "%q", s)
		assert.ErrorIs(t, err, ErrSyntax)
		assert.Contains(t, syntax.Reason, reason, "%q", s)
		assert.Zero(t, got, "%q", s)
	}
	for _, s := range []string{"18446744073709.551616", "18446744073710", "99999999999999999999", strings.Repeat("9", maxLength)} {
		got, err := Parse(s)
		assert.ErrorIs(t, err, ErrOverflow, s)
		assert.Zero(t, got, s)
	}
}

func TestErrorsDontRepeatTheInput(t *testing.T) {
	const private = "PRIVATE"
	for _, s := range []string{private, "-" + private, "1." + private, "1e" + private, strings.Repeat(private, 20)} {
		_, err := Parse(s)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), private)
		for _, raw := range []string{s, `"` + s + `"`, `"` + s} {
			_, err = ParseLoose(json.RawMessage(raw))
			require.Error(t, err)
			assert.NotContains(t, err.Error(), private)
		}
	}
}

func TestParseLoose(t *testing.T) {
	for s, want := range map[string]Amount{
		"0": 0, "0.0": 0, "0e5": 0, "0e-999": 0, "0.01": 10_000, "0.010000": 10_000, "0.0100000000": 10_000, "5": 5 * One,
		"1e-2": 10_000, "1E-2": 10_000, "1e+2": 100 * One, "1e2": 100 * One, "1.5e1": 15 * One, "1e-06": 1, "0.1e-5": 1, "100e-8": 1, "1000000e-12": 1,
		"0.00000001e2": 1, "18446744073709.551615": math.MaxUint64, "18446744073709551615e-6": math.MaxUint64, "1e13": 10_000_000_000_000 * One,
	} {
		for _, raw := range []string{s, `"` + s + `"`, " " + s + "\n", " \"" + s + "\" "} {
			got, err := ParseLoose(json.RawMessage(raw))
			require.NoError(t, err, raw)
			assert.Equal(t, want, got, raw)
		}
	}
	got, err := ParseLoose(json.RawMessage(`"0.\u0030\u0031"`))
	require.NoError(t, err)
	assert.Equal(t, Amount(10_000), got)
}

func TestParseLooseRefuses(t *testing.T) {
	for _, s := range []string{
		"", "null", "true", "{}", "[1]", "-1", "-0", "-1e-9", "+1", ".5", "5.", "00.1", "e5", "1e", "1e+", "1e+-2", "1e-+2", "1e2.0", "1e2e2", "1e9999", "1e-9999", "1e0001",
		"0.0000001", "1e-7", "0.1e-6", "1.0000001", "0x1p2", "1 2", "NaN", "Infinity", "much", strings.Repeat("0", maxLength+1),
	} {
		for _, raw := range []string{s, `"` + s + `"`} {
			got, err := ParseLoose(json.RawMessage(raw))
			assert.ErrorIs(t, err, ErrSyntax, raw)
			assert.Zero(t, got, raw)
		}
	}
	for _, raw := range []string{`"`, `"1`, `"1"2`, `'1'`, `""1""`, `" 1"`} {
		_, err := ParseLoose(json.RawMessage(raw))
		assert.ErrorIs(t, err, ErrSyntax, raw)
	}
	for _, raw := range []string{"18446744073709.551616", "1e14", "1e999", "18446744073709551616e-6", strings.Repeat("9", maxLength)} {
		_, err := ParseLoose(json.RawMessage(raw))
		assert.ErrorIs(t, err, ErrOverflow, raw)
	}
}
