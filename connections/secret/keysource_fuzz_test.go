package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

// A key file, however damaged, is used as it is or refused: never replaced, never quoted.
func FuzzKeyFile(f *testing.F) {
	key := secret.NewKey().Reveal()
	for _, seed := range []string{
		"", "\n", key, key + "\n", key + "\n" + key, "\ufeff" + key, key[:43], key[:42] + "B=", strings.Repeat("A", 44), key + "\x00", strings.ReplaceAll(key, "=", "") + "\n",
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "key")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		keys, err := secret.FileKeys(path).Keys(t.Context())
		after, readErr := os.ReadFile(path)
		require.NoError(t, readErr)
		require.Equal(t, string(data), string(after), "reading changed the file")
		if err != nil {
			require.ErrorIs(t, err, secret.ErrKeyFile)
			for _, word := range strings.Fields(string(data)) {
				require.False(t, len(word) >= 16 && strings.Contains(err.Error(), word), "the error quotes the file")
			}
			return
		}
		// A key has one form, so the file is its keys and white space.
		var forms []string
		for _, k := range keys {
			require.False(t, k.IsZero())
			forms = append(forms, k.Reveal())
		}
		require.Equal(t, strings.Fields(string(data)), forms)
	})
}
