//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package boltstore

import "os"

// unlock does nothing: on these systems a lock ends with the closing of its file.
func unlock(*os.File) error { return nil }
