// Package usdc holds amounts of USDC as whole micro-USDC, never as floats.
//
// The smallest complete use:
//
//	price, err := usdc.Parse("0.01")
//	if err != nil {
//		return err
//	}
//	total, err := price.Mul(250)
//	if err != nil {
//		return err
//	}
//	fmt.Println(total) // 2.5
//
// # Reading
//
// [Parse] is strict, for what people and configuration say, and so are the JSON
// and text decoders of [Amount]. [ParseLoose] is for what the platform sends: the same
// amount comes as "0.01", as "0.010000" and as the number 0.01. Neither rounds nor cuts:
// more than six decimals that matter are an error, since USDC has six.
//
// # Writing
//
// [Amount.String], JSON and text are the shortest exact decimal: "5", "0.01". JSON is
// always a string, because many readers turn a JSON number into a float. A missing
// amount is not zero: use *Amount where it may be absent.
//
// # Errors
//
// [ErrSyntax], as a [*SyntaxError] with the reason, [ErrOverflow] and [ErrUnderflow] are matched
// with errors.Is. No error repeats the text that was read. The amount beside an error is 0.
//
// # Compatibility
//
// What [Parse] and [Amount.String] accept and write won't change. [ParseLoose] may come to accept
// more. The package imports the standard library only.
package usdc
