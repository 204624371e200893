package usdc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// ErrSyntax: the text is not an amount. The error is a [*SyntaxError].
var ErrSyntax = errors.New("usdc: not an amount")

// SyntaxError says why a text is not an amount. It matches [ErrSyntax].
type SyntaxError struct {
	Reason string // for people; it never holds the text itself
}

func (e *SyntaxError) Error() string { return ErrSyntax.Error() + ": " + e.Reason }
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// Bounds of what is looked at: no amount needs as much, with or without an exponent.
const (
	maxLength         = 64 // bytes
	maxExponentDigits = 3
)

// Parse reads a decimal amount of USDC such as "5", "0.01" or "0.010000": ASCII digits and at
// most one point with one to six digits after it. It refuses signs, exponents, spaces, separators of
// thousands, a point at either end, a seventh decimal even if it is zero, and needless
// leading zeros ("00.1"), which suggest a slip. At most 64 bytes.
func Parse(s string) (Amount, error) {
	if len(s) > maxLength {
		return 0, &SyntaxError{"longer than 64 characters"}
	}
	whole, fraction, err := split(s)
	if err != nil {
		return 0, err
	}
	if len(fraction) > decimals {
		return 0, &SyntaxError{"more than 6 decimals"}
	}
	return scaled(whole+fraction, len(fraction))
}

// ParseLoose reads an amount of USDC out of the platform's JSON: a number, or a string that
// holds one. "0.01", "0.010000", 0.01, 1e-2 and "5" are amounts; no float is involved. Decimals after the
// sixth must be zeros. Signs, also of zero, are refused, and so are null, an exponent of more
// than three digits and a number of more than 64 bytes. For money going out use [Parse].
func ParseLoose(raw json.RawMessage) (Amount, error) {
	number := string(bytes.TrimSpace(raw))
	if strings.HasPrefix(number, `"`) {
		if err := json.Unmarshal(raw, &number); err != nil {
			return 0, &SyntaxError{"not valid JSON"}
		}
	}
	if len(number) > maxLength {
		return 0, &SyntaxError{"longer than 64 characters"}
	}
	exponent := 0
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		var err error
		if exponent, err = readExponent(number[i+1:]); err != nil {
			return 0, err
		}
		number = number[:i]
	}
	whole, fraction, err := split(number)
	if err != nil {
		return 0, err
	}
	return scaled(whole+fraction, len(fraction)-exponent)
}

// split cuts a plain decimal at its point; both parts are digits, fraction may be empty.
func split(s string) (whole, fraction string, err error) {
	whole, fraction, point := strings.Cut(s, ".")
	switch {
	case s == "":
		err = &SyntaxError{"it is empty"}
	case s[0] == '-' || s[0] == '+':
		err = &SyntaxError{"it has a sign"}
	case !isDigits(whole), point && !isDigits(fraction):
		err = &SyntaxError{"want digits, with at most one point between digits"}
	case len(whole) > 1 && whole[0] == '0':
		err = &SyntaxError{"it has needless leading zeros"}
	}
	return whole, fraction, err
}

func readExponent(s string) (int, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == s {
		digits = strings.TrimPrefix(s, "+")
	}
	if !isDigits(digits) || len(digits) > maxExponentDigits {
		return 0, &SyntaxError{"the exponent is not a number of one to three digits"}
	}
	return strconv.Atoi(s)
}

// scaled returns digits * 10^-scale USDC.
func scaled(digits string, scale int) (Amount, error) {
	significant := strings.TrimRight(digits, "0")
	scale -= len(digits) - len(significant)
	significant = strings.TrimLeft(significant, "0")
	if significant == "" {
		return 0, nil
	}
	zeros := decimals - scale
	if zeros < 0 {
		return 0, &SyntaxError{"more than 6 decimals"}
	}
	if zeros > maxLength { // before the zeros are written out
		return 0, ErrOverflow
	}
	micro, err := strconv.ParseUint(significant+strings.Repeat("0", zeros), 10, 64)
	if err != nil { // digits only, so it can only be too large
		return 0, ErrOverflow
	}
	return Amount(micro), nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
