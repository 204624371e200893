package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// ErrNotPrivate: others than the owner have access to a file or folder.
var ErrNotPrivate = errors.New("not private")

// Check returns an error that matches [ErrNotPrivate] and names the fix if
// others than the owner have access to the file or folder. It also refuses
// what is neither, such as a device.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return check(path, info)
}

func check(path string, info fs.FileInfo) error {
	mode := "600"
	switch {
	case info.IsDir():
		mode = "700"
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder", path)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s is %w: others have access (mode %04o); run: chmod %s %s", path, ErrNotPrivate, perm, mode, path)
	}
	return nil
}
