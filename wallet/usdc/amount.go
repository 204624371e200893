package usdc

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is an amount of USDC in micro-USDC (1e-6 USDC), at most about 18.4 trillion USDC.
// The zero value is no money. It is compared with the usual operators; sums and products
// go through [Amount.Add], [Amount.Sub] and [Amount.Mul], since the operators wrap around.
type Amount uint64

// One is one USDC. Constants are written with it: 5 * usdc.One.
const One Amount = 1_000_000

const decimals = 6

var (
	// ErrOverflow: the amount is larger than an Amount can hold.
	ErrOverflow = errors.New("usdc: the amount is over 18446744073709.551615 USDC")
	// ErrUnderflow: the difference would be negative.
	ErrUnderflow = errors.New("usdc: the difference would be below zero")
)

// Add returns a + b, or ErrOverflow.
func (a Amount) Add(b Amount) (Amount, error) {
	sum, carry := bits.Add64(uint64(a), uint64(b), 0)
	if carry != 0 {
		return 0, ErrOverflow
	}
	return Amount(sum), nil
}

// Sub returns a - b, or ErrUnderflow.
func (a Amount) Sub(b Amount) (Amount, error) {
	if b > a {
		return 0, ErrUnderflow
	}
	return a - b, nil
}

// Mul returns n times a, or ErrOverflow.
func (a Amount) Mul(n uint64) (Amount, error) {
	high, low := bits.Mul64(uint64(a), n)
	if high != 0 {
		return 0, ErrOverflow
	}
	return Amount(low), nil
}

// String returns the shortest exact decimal, which [Parse] reads: "0", "5", "0.01".
func (a Amount) String() string {
	whole := strconv.FormatUint(uint64(a/One), 10)
	fraction := a % One
	if fraction == 0 {
		return whole
	}
	return whole + "." + strings.TrimRight(fmt.Sprintf("%0*d", decimals, uint64(fraction)), "0")
}
