package agentjob

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

// A registration's file, however it was altered, is used or refused as it is, never changed by
// reading, and no error shows what is in it.
func FuzzRegistrationFile(f *testing.F) {
	const canary = "ak_CANARY_KEY"
	file := `{"format":1,"baseUrl":"https://agent-job.ai","agentName":"a","idempotencyKey":"k","attempts":[`
	for _, seed := range []string{
		``, `null`, `{}`, `{"format":2}`, file + `]}`, file + `null]}`, file[:40],
		file + `{"at":"2026-11-09T10:20:30Z","outcome":"sent"}]}`,
		file + `{"at":"2026-11-09T10:20:30Z","outcome":"registered","status":201,"answer":"{\"ok\":true,\"data\":{\"agentId\":\"a\",\"apiKey\":\"` + canary + `\"}}"}]}`,
		file + `{"at":"9999-12-31T23:59:59-23:59","outcome":"busy","status":503,"retryAfterNanoseconds":9223372036854775807}]}`,
		file + `{"at":"2026-11-09T10:20:30Z","outcome":"rate limited","status":429},{"at":"2026-11-09T11:20:30Z","outcome":"not sent"}]}`,
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "registration.json")
	copied := filepath.Join(filepath.Dir(path), "copy.json")
	now := time.Date(2026, 11, 9, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		reg, err := LoadRegistration(path)
		after, readErr := os.ReadFile(path)
		require.NoError(t, readErr)
		require.Equal(t, string(data), string(after), "reading changed the file")
		if err != nil {
			require.Nil(t, reg)
			require.NotContains(t, err.Error(), "CANARY")
			return
		}
		require.Equal(t, reg.Outcome == Registered, !reg.APIKey.IsZero())
		advice, err := NextRegistrationTry(path, now)
		require.NoError(t, err)
		require.NotEmpty(t, advice.Reason)
		require.True(t, advice.At.IsZero() || !advice.At.Before(now), "advice for the past: %v", advice.At)
		require.NotContains(t, advice.Reason, "CANARY")

		// What is read can be written and says the same then.
		file, err := readRegistration(path)
		require.NoError(t, err)
		written, err := json.Marshal(file) // as write does, without its two fsyncs
		if err != nil {
			require.ErrorContains(t, err, "year outside of range")
			return
		}
		require.NoError(t, os.WriteFile(copied, written, 0o600))
		again, err := LoadRegistration(copied)
		require.NoError(t, err)
		require.True(t, again.APIKey.Equal(reg.APIKey))
		require.True(t, again.At.Equal(reg.At))
		// Secrets can't be compared by value, nor can times of different zones.
		again.APIKey, reg.APIKey = secret.Secret{}, secret.Secret{}
		again.At, again.File = reg.At, reg.File
		require.Equal(t, *reg, *again)
	})
}
