package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

// Options are what a store may be given. The zero value is good.
type Options struct {
	// Keys seal what holds chat text. Open asks for them once and waits up to half
	// a minute. Nil is the file "key" in the store's folder. It is made with a new
	// key, unless records are there already that another key has sealed.
	Keys secret.KeySource
}

const keysWait = 30 * time.Second

// A Store is an [agentjob.Store] in a folder. Make it with [Open]. It is safe for
// concurrent use.
type Store struct {
	folder   *folder
	sealer   *secret.Sealer
	bindings turn

	mu     sync.Mutex
	closed bool
	leases map[string]*lease
}

var _ agentjob.Store = (*Store)(nil)

// Open opens the store in a folder, or makes both. The error matches
// [agentjob.ErrLeaseHeld] if another has it open for longer than a second,
// [agentjob.ErrStoreDamaged] if it can't be used, and [secret.ErrKeyUnknown] if its key file is gone.
func Open(dir string, opts Options) (_ *Store, err error) {
	f, err := enter(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.leave())
		}
	}()
	if err := f.prepare(); err != nil {
		return nil, err
	}
	if opts.Keys == nil {
		if opts.Keys, err = f.keys(); err != nil {
			return nil, fmt.Errorf("opening the store %s: %w", f.dir, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), keysWait)
	defer cancel()
	sealer, err := secret.NewSealer(ctx, opts.Keys)
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", f.dir, err)
	}
	return &Store{folder: f, sealer: sealer, leases: map[string]*lease{}}, nil
}

var errClosed = errors.New("the store is closed")

// Acquire takes the lease of a provider. It doesn't wait.
func (s *Store) Acquire(ctx context.Context, provider string) (_ agentjob.Lease, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("acquiring provider %q: %w", provider, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if provider == "" {
		return nil, errors.New("it has no name")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.leases[provider] != nil {
		return nil, fmt.Errorf("%w: one in this process serves it; stop it first", agentjob.ErrLeaseHeld)
	}
	l := &lease{store: s, provider: provider, folder: filepath.Join(providerFolder, name(provider)), lost: make(chan struct{})}
	if err := l.begin(); err != nil {
		return nil, err
	}
	s.leases[provider] = l
	return l, nil
}

// Provider returns the provider that a key's fingerprint was bound to, or "".
func (s *Store) Provider(ctx context.Context, fingerprint string) (provider string, err error) {
	err = s.bindings.do(ctx, func() error {
		if s.isClosed() {
			return errClosed
		}
		place := bindingPlace(fingerprint)
		if err := s.folder.undecided(place); err != nil {
			return err
		}
		text, err := privatefile.ReadFile(s.folder.path(place), maxRecord)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		bound, ok := parseBinding(text, fingerprint)
		if !ok {
			return s.folder.setAside(map[string]error{place: errors.New("it is not what this program writes there")})
		}
		provider = bound
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the provider of a key: %w", err)
	}
	return provider, nil
}

// BindProvider durably binds a key's fingerprint to a provider.
func (s *Store) BindProvider(ctx context.Context, fingerprint, provider string) error {
	err := s.bindings.do(ctx, func() error {
		if s.isClosed() {
			return errClosed
		}
		if err := s.folder.intact(); err != nil {
			return err
		}
		return privatefile.WriteFile(s.folder.path(bindingPlace(fingerprint)), encodeBinding(fingerprint, provider))
	})
	if err != nil {
		return fmt.Errorf("binding a key to provider %q: %w", provider, err)
	}
	return nil
}

func bindingPlace(fingerprint string) string {
	return filepath.Join(fingerprintFolder, name(fingerprint)+bindingExtension)
}

func encodeBinding(fingerprint, provider string) []byte {
	return fmt.Appendf(nil, "fingerprint %s\nprovider %s\n", strconv.Quote(fingerprint), strconv.Quote(provider))
}

func parseBinding(text []byte, fingerprint string) (provider string, ok bool) {
	_, quoted, _ := strings.Cut(string(text), "\nprovider ") // in a quoted text there is no line end
	provider, err := strconv.Unquote(strings.TrimSuffix(quoted, "\n"))
	return provider, err == nil && bytes.Equal(text, encodeBinding(fingerprint, provider))
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close gives back all leases, makes everything durable and lets others open the folder. It
// may be called again, then doing nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	leases := slices.Collect(maps.Values(s.leases))
	s.mu.Unlock()
	var errs []error
	for _, l := range leases {
		l.lose()
		errs = append(errs, l.Close())
	}
	// After what is being bound, which nobody may wait for any more.
	return errors.Join(append(errs, s.bindings.do(context.Background(), s.folder.leave))...)
}

// A turn lets one operation happen at a time.
type turn struct{ mu sync.Mutex }

// do runs an operation when its turn comes, unless ctx has ended by then, and returns
// its error. When ctx ends it doesn't wait any longer: disks may hang.
func (t *turn) do(ctx context.Context, operation func() error) error {
	done := make(chan error, 1)
	go func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err := ctx.Err(); err != nil { // what nobody waits for must not overtake what comes later
			done <- err
			return
		}
		done <- operation()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
