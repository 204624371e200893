package secret_test

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

const childEnv = "SECRET_TEST_KEY_FILE"

// TestMain lets the test binary be a process that reads, or makes, a key file.
func TestMain(m *testing.M) {
	path := os.Getenv(childEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	keys, err := secret.FileKeys(path).Keys(context.Background())
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(keys[0].ID())
}

func TestKeyRoundTrip(t *testing.T) {
	key := secret.NewKey()
	again, err := secret.ParseKey(key.Reveal())
	require.NoError(t, err)
	assert.Equal(t, key.Reveal(), again.Reveal())
	assert.Equal(t, key.ID(), again.ID())
	assert.Len(t, key.ID(), 16)
	assert.NotEqual(t, key.ID(), secret.NewKey().ID())
	assert.False(t, key.IsZero())
	assert.True(t, secret.Key{}.IsZero())
	assert.Equal(t, "no key", secret.Key{}.String())
}

// The id of a key is in every sealed text, so it may never change.
func TestKeyIDIsStable(t *testing.T) {
	key, err := secret.ParseKey(base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef")))
	require.NoError(t, err)
	assert.Equal(t, "5897aec2383e21c1", key.ID())
}

func TestParseKeyRefusesOthersWithoutShowingThem(t *testing.T) {
	good := secret.NewKey().Reveal()
	for _, bad := range []string{"", "short", good[:40], good + good, strings.TrimRight(good, "="), "!" + good[1:], " " + good} {
		_, err := secret.ParseKey(bad)
		require.Error(t, err, "%q", bad)
		if len(bad) > 10 {
			assert.NotContains(t, err.Error(), bad[1:10])
		}
	}
}

func TestFileKeysMakesAPrivateFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "seal.key")
	first, err := secret.FileKeys(path).Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, first, 1)
	for _, name := range []string{path, filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		assert.NoError(t, privatefile.Check(name))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, first[0].Reveal()+"\n", string(text))

	again, err := secret.FileKeys(path).Keys(t.Context())
	require.NoError(t, err)
	assert.Equal(t, first[0].ID(), again[0].ID())
}

func TestFileKeysReadsARotatedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	newer, older := secret.NewKey(), secret.NewKey()
	require.NoError(t, os.WriteFile(path, []byte(newer.Reveal()+"\r\n\n"+older.Reveal()), 0o600))
	keys, err := secret.FileKeys(path).Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 2)
	assert.Equal(t, newer.ID(), keys[0].ID())
	assert.Equal(t, older.ID(), keys[1].ID())
}

func TestFileKeysNeverReplacesADamagedFile(t *testing.T) {
	good := secret.NewKey().Reveal()
	for name, text := range map[string]string{
		"empty": "", "blank": " \n", "cut": good[:30], "second cut": good + "\n" + good[:30], "zeroed": strings.Repeat("\x00", 45),
		"comment": "# key\n" + good, "endless": strings.Repeat(good+"\n", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "seal.key")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := secret.FileKeys(path).Keys(t.Context())
			require.ErrorIs(t, err, secret.ErrKeyFile)
			require.ErrorContains(t, err, path)
			assert.NotContains(t, err.Error(), good[:10])
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, text, string(after))
		})
	}
}

func TestFileKeysRefusesWhatOthersCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seal.key")
	require.NoError(t, os.WriteFile(path, []byte(secret.NewKey().Reveal()), 0o600))
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o610} {
		require.NoError(t, os.Chmod(path, mode))
		_, err := secret.FileKeys(path).Keys(t.Context())
		require.ErrorIs(t, err, secret.ErrKeyFile)
		require.ErrorIs(t, err, privatefile.ErrNotPrivate)
		require.ErrorContains(t, err, "chmod 600 "+path)
	}
	require.NoError(t, os.Chmod(path, 0o400))
	_, err := secret.FileKeys(path).Keys(t.Context())
	require.NoError(t, err)
}

func TestFileKeysRefusesToMakeAKeyInASharedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shared")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := secret.FileKeys(filepath.Join(dir, "seal.key")).Keys(t.Context())
	require.ErrorIs(t, err, secret.ErrKeyFile)
	require.ErrorContains(t, err, "chmod 700 "+dir)
	require.NoFileExists(t, filepath.Join(dir, "seal.key"))
}

func TestConcurrentFirstUsesEndWithOneKey(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "keys", "seal.key")
		ids := make([]string, 16)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				keys, err := secret.FileKeys(path).Keys(t.Context())
				if assert.NoError(t, err) {
					ids[i] = keys[0].ID()
				}
			})
		}
		all.Wait()
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1, "only the key file, no temporary ones")
	}
}

func TestConcurrentProcessesEndWithOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "seal.key")
	ids := make([]string, 4)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+path)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			assert.NoError(t, err)
			ids[i] = string(out)
		})
	}
	all.Wait()
	for _, id := range ids {
		assert.Len(t, id, 16)
		assert.Equal(t, ids[0], id)
	}
}

func TestEnvKeys(t *testing.T) {
	const name = "SECRET_TEST_KEYS"
	_, err := secret.EnvKeys(name).Keys(t.Context())
	require.ErrorContains(t, err, name)

	a, b := secret.NewKey(), secret.NewKey()
	t.Setenv(name, a.Reveal()+" "+b.Reveal())
	keys, err := secret.EnvKeys(name).Keys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 2)
	assert.Equal(t, a.ID(), keys[0].ID())

	t.Setenv(name, "hunter2-not-a-key")
	_, err = secret.EnvKeys(name).Keys(t.Context())
	require.ErrorContains(t, err, name)
	assert.NotContains(t, err.Error(), "hunter2")
}
