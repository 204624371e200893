package systrace

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// An Image is a folder's content by path, which has slashes and is relative to it.
type Image map[string]Entry

// An Entry is a file or a folder.
type Entry struct {
	Folder bool
	Data   []byte
}

// paths puts a folder before what is in it.
func (i Image) paths() []string { return slices.Sorted(maps.Keys(i)) }

// Sum tells images apart.
func (i Image) Sum() [sha256.Size]byte {
	sum := sha256.New()
	part := func(data []byte) {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
		sum.Write(data)
	}
	for _, path := range i.paths() {
		part([]byte(path))
		part([]byte(fmt.Sprint(i[path].Folder)))
		part(i[path].Data)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// Write makes the image in an empty folder, for the owner alone.
func (i Image) Write(folder string) error {
	for _, path := range i.paths() {
		place := filepath.Join(folder, filepath.FromSlash(path))
		var err error
		if i[path].Folder {
			err = os.Mkdir(place, 0o700)
		} else {
			err = os.WriteFile(place, i[path].Data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("rebuilding a folder: %w", err)
		}
	}
	return nil
}
