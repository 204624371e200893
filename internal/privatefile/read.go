package privatefile

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most limit bytes. If others than the owner have
// access to it, it isn't read and the error matches [ErrNotPrivate].
func ReadFile(path string, limit int64) ([]byte, error) {
	// A named pipe would block in Open, so look first and again at what was opened.
	if err := Check(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // only read: closing can't lose anything
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes, which can't be right", path, limit)
	}
	return data, nil
}
