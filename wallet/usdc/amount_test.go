package usdc

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArithmeticIsChecked(t *testing.T) {
	const most = Amount(math.MaxUint64)
	add := func(a Amount, b uint64) (Amount, error) { return a.Add(Amount(b)) }
	sub := func(a Amount, b uint64) (Amount, error) { return a.Sub(Amount(b)) }
	for name, c := range map[string]struct {
		do   func(Amount, uint64) (Amount, error)
		a    Amount
		b    uint64
		want Amount
		err  error
	}{
		"sum":                      {add, 10_000, 5, 10_005, nil},
		"sum at the limit":         {add, most - 1, 1, most, nil},
		"sum over the limit":       {add, most, 1, 0, ErrOverflow},
		"sum of two largest":       {add, most, math.MaxUint64, 0, ErrOverflow},
		"difference":               {sub, 10_000, 1, 9_999, nil},
		"difference down to zero":  {sub, most, math.MaxUint64, 0, nil},
		"difference below zero":    {sub, 0, 1, 0, ErrUnderflow},
		"product":                  {Amount.Mul, 10_000, 250, 2_500_000, nil},
		"product with zero":        {Amount.Mul, most, 0, 0, nil},
		"product at the limit":     {Amount.Mul, most, 1, most, nil},
		"product over the limit":   {Amount.Mul, most/2 + 1, 2, 0, ErrOverflow},
		"product far over":         {Amount.Mul, most, math.MaxUint64, 0, ErrOverflow},
		"product that wraps small": {Amount.Mul, 1 << 32, 1 << 32, 0, ErrOverflow},
	} {
		got, err := c.do(c.a, c.b)
		assert.Equal(t, c.want, got, name)
		assert.ErrorIs(t, err, c.err, name)
	}
}

func TestStringIsTheShortestExactDecimal(t *testing.T) {
	for want, a := range map[string]Amount{
		"0": 0, "0.000001": 1, "0.01": 10_000, "0.1": 100_000, "1": One, "1.000001": One + 1, "20": 20 * One, "10.5": 10*One + One/2,
		"18446744073709.551615": math.MaxUint64,
	} {
		assert.Equal(t, want, a.String())
	}
}
