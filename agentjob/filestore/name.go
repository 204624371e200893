package filestore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Names of files are made of ids. Lower-case letters, digits and "_" stand for themselves, and "-" if it
// isn't first; every other byte is written as %xx. So no two ids share a name, not
// even where upper and lower case, or two ways to write é, are the same to the file system.
// What a person most often looks at, a UUID, stays as it is.
const (
	maxName = 100 // bytes; file systems take 255 with the extension
	keep    = 32  // of the start of a longer one, beside its hash
)

// devices are names that Windows gives to no file, with any extension.
var devices = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}

func isDevice(id string) bool {
	port, isCom := strings.CutPrefix(id, "com")
	if !isCom {
		port, isCom = strings.CutPrefix(id, "lpt")
	}
	return devices[id] || isCom && len(port) == 1 && port[0] >= '0' && port[0] <= '9'
}

// name returns the name of an id without an extension. The record's envelope has the true id.
func name(id string) string {
	var b strings.Builder
	reserved := isDevice(id)
	for i := range len(id) {
		switch c := id[i]; {
		case reserved && i == 0:
			fmt.Fprintf(&b, "%%%02x", c)
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() <= maxName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(id))
	return b.String()[:keep] + "~" + hex.EncodeToString(sum[:])
}
