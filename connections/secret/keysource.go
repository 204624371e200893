package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agentjob/agentjob-go/internal/privatefile"
)

// A KeySource supplies the keys of a [Sealer].
type KeySource interface {
	// Keys returns at least one key. The first one seals, all of them open.
	// It may block, until ctx ends. It must be safe for concurrent use.
	Keys(ctx context.Context) ([]Key, error)
}

// KeyFunc is a function that is a [KeySource].
type KeyFunc func(ctx context.Context) ([]Key, error)

// Keys calls f.
func (f KeyFunc) Keys(ctx context.Context) ([]Key, error) { return f(ctx) }

// ErrKeyFile: a key file can't be read, made or trusted. What was sealed stays as it is.
var ErrKeyFile = errors.New("key file")

// A key file holds a few lines; anything much larger is another file.
const maxKeyFile = 64 << 10

// FileKeys reads keys from a private file, one a line, as [Key.Reveal]
// writes them. If the file doesn't exist, Keys makes it with one new key: file 0600,
// folder 0700 if it must be made, an existing folder must be as private. Processes that do so at the
// same time end with the same key. A file that is empty, damaged
// or accessible to others is an error that matches [ErrKeyFile], and is
// never replaced.
func FileKeys(path string) KeySource {
	return KeyFunc(func(ctx context.Context) ([]Key, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := readKeyFile(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKeyFile, err)
		}
		keys, err := parseKeys(text)
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w; restore it from a backup, a new key can't open what the old one sealed", ErrKeyFile, path, err)
		}
		return keys, nil
	})
}

func readKeyFile(path string) (string, error) {
	text, err := privatefile.ReadFile(path, maxKeyFile)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	if err := privatefile.EnsureDir(filepath.Dir(path)); err != nil {
		return "", err
	}
	// Another process may have made it since: its key is the one to use.
	err = privatefile.Create(path, []byte(NewKey().Reveal()+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	text, err = privatefile.ReadFile(path, maxKeyFile)
	return string(text), err
}

// EnvKeys reads keys from an environment variable, separated by spaces or
// line ends, each as [Key.Reveal] writes it.
func EnvKeys(name string) KeySource {
	return KeyFunc(func(context.Context) ([]Key, error) {
		text, err := FromEnv(name)
		if err != nil {
			return nil, fmt.Errorf("reading the sealing keys: %w", err)
		}
		keys, err := parseKeys(text.Reveal())
		if err != nil {
			return nil, fmt.Errorf("the environment variable %s: %w", name, err)
		}
		return keys, nil
	})
}

func parseKeys(text string) ([]Key, error) {
	var keys []Key
	for i, field := range strings.Fields(text) {
		key, err := ParseKey(field)
		if err != nil {
			return nil, fmt.Errorf("key %d is damaged: %w", i+1, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it")
	}
	return keys, nil
}
