package agentjob

import (
	"errors"
	"io"
	"sync"
)

// A sizedSource is a request's body of exactly so many bytes. It gives out the last of them
// only when it knows that none follow, so that no server can take a file of another length for the whole.
type sizedSource struct {
	mu     sync.Mutex // the transport may read after it has answered
	source io.Reader
	left   int64
	fault  error // of the source
	ended  bool
}

var (
	errUploadOver = errors.New("the upload is over")
	errNoReads    = errors.New("the reader returns neither bytes nor an error")
	errOverread   = errors.New("the reader returns more bytes than it was asked for")
)

func (s *sizedSource) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return 0, errUploadOver
	case s.fault != nil:
		return 0, s.fault
	case s.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := s.source.Read(p[:min(int64(len(p)), s.left)])
	if n < 0 || int64(n) > s.left || n > len(p) {
		n, err = 0, errOverread
	}
	switch left := s.left - int64(n); {
	case left == 0 && err == nil:
		err = s.more()
	case left > 0 && err == io.EOF:
		err = sizeFault("it ends %d bytes early", left)
	}
	if err != nil && err != io.EOF {
		s.fault = err
		return 0, err
	}
	s.left -= int64(n)
	return n, err
}

// more returns io.EOF if the source has no more bytes.
func (s *sizedSource) more() error {
	var one [1]byte
	for range 100 {
		switch n, err := s.source.Read(one[:]); {
		case n > 0:
			return sizeFault("it goes on after the last byte reserved")
		case err != nil:
			return err
		}
	}
	return errNoReads
}

// Close is the transport's. Whoever opened the source closes it.
func (s *sizedSource) Close() error { return nil }

// end waits for a read under way and allows no more of them.
func (s *sizedSource) end() (left int64, fault error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.left, s.fault
}
