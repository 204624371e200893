package boltstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/privatefile"
)

func TestAnyCutIsNoticed(t *testing.T) {
	s := newSample(t)
	page := os.Getpagesize()
	lengths := []int{0, 1, 79, 80, page - 1, page + 79}
	for at := page; at < len(s.data); at += page {
		lengths = append(lengths, at, at+page/2)
	}
	cut := 0
	for _, n := range lengths {
		s.place(t, s.data[:n])
		if !s.opensWholeOrNotAtAll(t, fmt.Sprintf("cut to %d bytes", n)) {
			cut++
			require.Len(t, s.setAside(t), 1)
		}
	}
	t.Logf("%d of %d cuts were damage, the others were behind the last page in use", cut, len(lengths))
	require.Greater(t, cut, len(lengths)/2)
}

func TestAnyFlippedByteIsNoticed(t *testing.T) {
	s := newSample(t)
	page := os.Getpagesize()
	r := rand.New(rand.NewPCG(1, 2))
	flips := [][2]int{}
	for at := range 80 { // the descriptions of the file
		flips = append(flips, [2]int{at, 1 << (at % 8)}, [2]int{page + at, 0xFF})
	}
	for at := 0; at < len(s.data); at += page { // the start of each page
		for range 4 {
			flips = append(flips, [2]int{at + r.IntN(64), 1 << r.IntN(8)})
		}
	}
	for len(flips) < 600 {
		flips = append(flips, [2]int{r.IntN(len(s.data)), 1 + r.IntN(255)})
	}
	damaged := 0
	for _, flip := range flips {
		data := bytes.Clone(s.data)
		data[flip[0]] ^= byte(flip[1])
		s.place(t, data)
		if !s.opensWholeOrNotAtAll(t, fmt.Sprintf("byte %d changed by %#x", flip[0], flip[1])) {
			damaged++
			continue
		}
		s.write(t)
		require.True(t, s.opensWholeOrNotAtAll(t, fmt.Sprintf("byte %d changed by %#x, then written to", flip[0], flip[1])))
	}
	t.Logf("%d of %d changes were damage, the others were in bytes that mean nothing", damaged, len(flips))
	require.Greater(t, damaged, len(flips)/4)
}

func TestDamagedFileIsSetAsideUntilTold(t *testing.T) {
	s := newSample(t)
	page := os.Getpagesize()
	zeroed := bytes.Clone(s.data)
	clear(zeroed[2*page:])
	for name, damaged := range map[string][]byte{
		"empty":      {},
		"text":       []byte(strings.Repeat("not a store\n", 5000)),
		"cut":        s.data[:5*page],
		"all zero":   make([]byte, len(s.data)),
		"pages zero": zeroed,
	} {
		t.Run(name, func(t *testing.T) {
			s.place(t, damaged)
			_, err := boltstore.Open(s.path, boltstore.Options{})
			var first *boltstore.DamagedError
			require.ErrorAs(t, err, &first)
			require.Equal(t, s.path, first.Path)
			require.Equal(t, s.setAside(t), []string{first.SetAside})
			require.NoFileExists(t, s.path)
			for _, part := range []string{s.path, first.SetAside, "StartAfresh"} {
				require.ErrorContains(t, err, part)
			}
			for range 3 { // a supervisor starts it again and again
				_, again := boltstore.Open(s.path, boltstore.Options{})
				require.EqualError(t, again, err.Error())
				require.NoFileExists(t, s.path)
			}

			setAside, err := boltstore.StartAfresh(s.path)
			require.NoError(t, err)
			require.Equal(t, []string{first.SetAside}, setAside)
			records, _, err := s.content(t)
			require.NoError(t, err)
			require.Empty(t, records)
			kept, err := os.ReadFile(first.SetAside)
			require.NoError(t, err)
			require.True(t, bytes.Equal(damaged, kept), "the file was changed")
		})
	}
}

func TestStartAfreshSetsAsideWhatIsThere(t *testing.T) {
	s := newSample(t)
	store := reopened(t, s.path)
	_, err := boltstore.StartAfresh(s.path)
	require.ErrorIs(t, err, agentjob.ErrLeaseHeld)
	require.NoError(t, store.Close())

	for n := 1; n <= 2; n++ {
		setAside, err := boltstore.StartAfresh(s.path)
		require.NoError(t, err)
		require.Len(t, setAside, n, "nothing is deleted")
	}
	records, _, err := s.content(t)
	require.NoError(t, err)
	require.Empty(t, records)

	// What was set aside is good, and told to be when it is all that there is.
	require.NoError(t, os.Remove(s.path))
	require.NoError(t, os.Remove(s.setAside(t)[1]))
	_, err = boltstore.Open(s.path, boltstore.Options{})
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	require.ErrorContains(t, err, "give it back its name")
	require.NoError(t, os.Rename(s.setAside(t)[0], s.path))
	require.True(t, s.opensWholeOrNotAtAll(t, "restored"))
}

func TestFolderIsLeftInPlace(t *testing.T) {
	path := newPath(t)
	require.NoError(t, privatefile.EnsureDir(path))
	kept := filepath.Join(path, "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	_, err := boltstore.Open(path, boltstore.Options{})
	require.ErrorContains(t, err, "is a folder")
	require.NotErrorIs(t, err, agentjob.ErrStoreDamaged)
	_, err = boltstore.StartAfresh(path)
	require.ErrorContains(t, err, "is a folder")
	require.FileExists(t, kept)
}

func TestStartAfreshMakesAStoreWhereThereIsNone(t *testing.T) {
	path := newPath(t)
	setAside, err := boltstore.StartAfresh(path)
	require.NoError(t, err)
	require.Empty(t, setAside)
	require.FileExists(t, path)
	reopened(t, path)
}

// A crash between the renaming and the report must not make the next start begin with nothing.
func TestFileSetAsideByAStartThatDiedIsReported(t *testing.T) {
	s := newSample(t)
	name := s.path + ".damaged-20261130T120000.000000000Z"
	s.place(t, nil)
	require.NoError(t, os.Rename(s.path, name))
	_, err := boltstore.Open(s.path, boltstore.Options{})
	var damaged *boltstore.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, name, damaged.SetAside)
	require.ErrorContains(t, err, "the file has only 0 bytes")
}

func TestFilesOfOthersAreLeftInPlace(t *testing.T) {
	for name, c := range map[string]struct{ format, text string }{
		"a newer version":   {"3", "update this program"},
		"an early version":  {"1", "no published version"},
		"no version at all": {"new", "no published version"},
		"another program":   {"", "choose another path"},
	} {
		t.Run(name, func(t *testing.T) {
			path, data := otherBolt(t, c.format)
			for range 2 { // the second time shows that the lock was given back
				_, err := boltstore.Open(path, boltstore.Options{})
				var damaged *boltstore.DamagedError
				require.ErrorAs(t, err, &damaged)
				require.Empty(t, damaged.SetAside)
				require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
				require.ErrorContains(t, err, path)
				require.ErrorContains(t, err, c.text)
				require.Equal(t, c.format == "3", errors.Is(err, agentjob.ErrStoreNewer))
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, after), "the file was changed")
			require.NoFileExists(t, path+".key")
			setAside, err := boltstore.StartAfresh(path)
			require.NoError(t, err)
			require.Len(t, setAside, 1)
			reopened(t, path)
		})
	}
}

// otherBolt makes a bbolt file of this format, or of another program.
func otherBolt(t *testing.T, format string) (path string, data []byte) {
	path = newPath(t)
	if format != "" {
		require.NoError(t, reopened(t, path).Close())
		require.NoError(t, os.Remove(path+".key"))
	}
	require.NoError(t, privatefile.EnsureDir(filepath.Dir(path)))
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		if format == "" {
			_, err := tx.CreateBucket([]byte("something"))
			return err
		}
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte(format))
	}))
	require.NoError(t, db.Close())
	data, err = os.ReadFile(path)
	require.NoError(t, err)
	return path, data
}

func TestMissingKeyFileIsNotReplaced(t *testing.T) {
	s := newSample(t)
	require.NoError(t, os.Rename(s.path+".key", s.path+".elsewhere"))
	for range 2 {
		_, err := boltstore.Open(s.path, boltstore.Options{})
		require.ErrorIs(t, err, secret.ErrKeyUnknown)
		require.ErrorContains(t, err, s.path+".key")
		require.ErrorContains(t, err, "15 records")
		require.NoFileExists(t, s.path+".key")
	}
	after, err := os.ReadFile(s.path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(s.data, after), "the file was changed")
	require.NoError(t, os.Rename(s.path+".elsewhere", s.path+".key"))
	require.True(t, s.opensWholeOrNotAtAll(t, "with its key again"))
}

func TestStoreWithoutSealedTextNeedsNoOldKey(t *testing.T) {
	path := newPath(t)
	_, err := boltstore.StartAfresh(path) // as if the first Open had died before it made the key
	require.NoError(t, err)
	require.NoFileExists(t, path+".key")
	store := reopened(t, path)
	lease, err := store.Acquire(t.Context(), "agent-1")
	require.NoError(t, err)
	require.NoError(t, lease.Put(t.Context(), agentjob.Record{Provider: "agent-1", TaskID: "a", State: agentjob.StateClaimed}))
	require.NoError(t, store.Close())
	require.NoError(t, os.Remove(path+".key"))
	reopened(t, path)
	assert.FileExists(t, path+".key")
}

func TestStoreBehindASymbolicLinkIsOneStore(t *testing.T) {
	s := newSample(t)
	link := filepath.Join(filepath.Dir(newPath(t)), "link.db")
	require.NoError(t, privatefile.EnsureDir(filepath.Dir(link)))
	if err := os.Symlink(s.path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	store := reopened(t, link)
	_, err := boltstore.Open(s.path, boltstore.Options{})
	require.ErrorIs(t, err, agentjob.ErrLeaseHeld)
	require.NoError(t, store.Close())
	s.place(t, s.data[:100])
	_, err = boltstore.Open(link, boltstore.Options{})
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	require.Len(t, s.setAside(t), 1)
}
