package usdc

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type price struct {
	Amount   Amount            `json:"amount"`
	Optional *Amount           `json:"optional"`
	ByAmount map[Amount]string `json:"by_amount,omitempty"`
}

func TestJSONRoundTrip(t *testing.T) {
	optional := Amount(1)
	in := price{Amount: 10_000, Optional: &optional, ByAmount: map[Amount]string{One / 2: "half"}}
	data, err := json.Marshal(in)
	require.NoError(t, err)
	assert.JSONEq(t, `{"amount":"0.01","optional":"0.000001","by_amount":{"0.5":"half"}}`, string(data))
	var out price
	require.NoError(t, json.Unmarshal(data, &out))
	assert.Equal(t, in, out)
}

func TestJSONNullIsAbsentAndNotZero(t *testing.T) {
	optional := One
	out := price{Optional: &optional}
	require.NoError(t, json.Unmarshal([]byte(`{"optional":null}`), &out))
	assert.Nil(t, out.Optional)
	assert.ErrorIs(t, json.Unmarshal([]byte(`{"amount":null}`), &out), ErrSyntax)
}

func TestJSONIsStrictAndLeavesTheAmountAlone(t *testing.T) {
	for _, raw := range []string{`0.01`, `1`, `true`, `{}`, `["1"]`, `""`, `"-1"`, `"1e2"`, `" 1"`, `"0.0000001"`, `"01"`} {
		out := price{Amount: 7}
		assert.ErrorIs(t, json.Unmarshal([]byte(`{"amount":`+raw+`}`), &out), ErrSyntax, raw)
		assert.Equal(t, Amount(7), out.Amount, raw)
	}
	var a Amount
	assert.ErrorIs(t, json.Unmarshal([]byte(`"18446744073709.551616"`), &a), ErrOverflow)
	for _, raw := range []string{"", `"`, `"1`} { // called without encoding/json
		assert.ErrorIs(t, a.UnmarshalJSON([]byte(raw)), ErrSyntax, raw)
	}
}
