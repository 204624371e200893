package secret_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentjob/agentjob-go/connections/secret"
)

func Example() {
	key := secret.New("ak_EXAMPLE")
	fmt.Println("the key is", key)
	fmt.Println("Authorization: Bearer " + key.Reveal())
	// Output:
	// the key is [redacted]
	// Authorization: Bearer ak_EXAMPLE
}

func ExampleFileKeys() {
	folder, err := os.MkdirTemp("", "example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)

	sealer, err := secret.NewSealer(context.Background(), secret.FileKeys(filepath.Join(folder, "seal.key")))
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed := sealer.Seal([]byte("private text"), []byte("record 7"))
	text, err := sealer.Open(sealed, []byte("record 7"))
	fmt.Println(string(text), err)
	_, err = sealer.Open(sealed, []byte("record 8"))
	fmt.Println(errors.Is(err, secret.ErrTampered))
	// Output:
	// private text <nil>
	// true
}
