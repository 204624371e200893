package usdc

import (
	"encoding/json"
	"math/big"
	"regexp"
	"testing"
)

var (
	strict = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]{1,6})?$`)
	loose  = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)
)

// model is the amount by big rationals: not ok when the grammar, the length,
// a seventh decimal or the size is against it.
func model(grammar *regexp.Regexp, s string) (micro Amount, ok bool) {
	if len(s) > maxLength || !grammar.MatchString(s) {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, false
	}
	r.Mul(r, big.NewRat(int64(One), 1))
	if !r.IsInt() || !r.Num().IsUint64() {
		return 0, false
	}
	return Amount(r.Num().Uint64()), true
}

func checkAgainstModel(t *testing.T, s string, got Amount, err error, want Amount, ok bool) {
	t.Helper()
	if (err == nil) != ok || got != want {
		t.Fatalf("%q: got %d, %v; by rationals %d, %v", s, uint64(got), err, uint64(want), ok)
	}
	if err != nil {
		return
	}
	text := got.String()
	if again, err := Parse(text); err != nil || again != got || again.String() != text {
		t.Fatalf("%q: %d printed as %q and read back as %d, %v", s, uint64(got), text, uint64(again), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "0.01", "0.010000", "18446744073709.551615", "18446744073709.551616", "00.1", ".5", "5.", "-1", "1e2", "1.0000000", "٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse(s)
		want, ok := model(strict, s)
		checkAgainstModel(t, s, got, err, want, ok)
		if ok && len(got.String()) > len(s) {
			t.Fatalf("%q is shorter than its printed form %q", s, got)
		}
	})
}

// FuzzParseLoose reads each input bare, if it is JSON, and as a JSON string.
func FuzzParseLoose(f *testing.F) {
	for _, s := range []string{"0", "0.01", "1e-2", "0.0100000000", "1.5e1", "18446744073709551615e-6", "1e14", "1e999", "0e-999", "1e-7", "-0", "1e+-2", "null", "0.00000001e2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, ok := model(loose, s)
		quoted, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseLoose(quoted)
		checkAgainstModel(t, s, got, err, want, ok)
		var number json.Number
		if json.Unmarshal([]byte(s), &number) == nil && number.String() == s {
			got, err = ParseLoose(json.RawMessage(s))
			checkAgainstModel(t, s, got, err, want, ok)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(0), uint64(1))
	f.Add(^uint64(0), uint64(10_000))
	f.Fuzz(func(t *testing.T, x, y uint64) {
		a, b := Amount(x), Amount(y)
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back Amount
		if err := json.Unmarshal(data, &back); err != nil || back != a {
			t.Fatalf("%d came back from %s as %d, %v", x, data, uint64(back), err)
		}
		if sum, err := a.Add(b); err == nil {
			if rest, err := sum.Sub(b); err != nil || rest != a {
				t.Fatalf("%d + %d - %d = %d, %v", x, y, y, uint64(rest), err)
			}
		}
		product := new(big.Int).Mul(new(big.Int).SetUint64(x), new(big.Int).SetUint64(y))
		got, err := a.Mul(y)
		if product.IsUint64() != (err == nil) || err == nil && uint64(got) != product.Uint64() {
			t.Fatalf("%d * %d = %d, %v; want %s", x, y, uint64(got), err, product)
		}
	})
}
