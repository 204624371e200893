package usdc_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentjob/agentjob-go/wallet/usdc"
)

func ExampleParse() {
	price, err := usdc.Parse("0.01")
	if err != nil {
		fmt.Println(err)
		return
	}
	total, err := price.Mul(250)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(total)

	_, err = usdc.Parse("0.0000001")
	fmt.Println(errors.Is(err, usdc.ErrSyntax), err)
	// Output:
	// 2.5
	// true usdc: not an amount: more than 6 decimals
}

func ExampleParseLoose() {
	for _, raw := range []string{`"0.010000"`, `0.01`, `1e-2`} {
		amount, err := usdc.ParseLoose(json.RawMessage(raw))
		fmt.Println(amount, err)
	}
	// Output:
	// 0.01 <nil>
	// 0.01 <nil>
	// 0.01 <nil>
}

func ExampleAmount_Sub() {
	balance, price := usdc.One/2, 2*usdc.One
	_, err := balance.Sub(price)
	fmt.Println(errors.Is(err, usdc.ErrUnderflow))
	// Output: true
}
