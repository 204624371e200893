package boltstore

import (
	"errors"
	"fmt"
	"math"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/agentjob/agentjob-go/agentjob"
)

const (
	defaultMaxSize = 1 << 30
	minMaxSize     = 32 << 20 // the largest reply is 0.4 MB, and bbolt rewrites its neighbours with it
)

// A share is how much of the store, in sixteenths of its size, an operation leaves free for
// those that matter more. So work that was begun can be finished in a store that takes no more. The
// shares are large, for bbolt needs many free pages in a row for a long reply and finds them scattered.
type share int

const (
	forAll    share = 0 // deletes and ends, which make room
	forEnds   share = 4 // saved replies leave this
	forSaves  share = 8 // new claims leave this
	forClaims share = 9 // the binding of a provider, a worker's test whether it may claim again, leaves this
)

var shares = map[agentjob.State]share{agentjob.StateClaimed: forSaves, agentjob.StateSaved: forEnds, agentjob.StateEnded: forAll}

func (o Options) maxSize() (int64, error) {
	switch {
	case o.MaxSize == 0:
		return defaultMaxSize, nil
	case o.MaxSize < minMaxSize:
		return 0, fmt.Errorf("Options.MaxSize is %d: a store needs %d bytes at least", o.MaxSize, minMaxSize)
	}
	return min(o.MaxSize, math.MaxInt), nil
}

// limit bounds the size of a file, which has some bytes already. A larger one than is
// allowed may still grow a little, for without that a delete might not work.
func (f *file) limit(maxSize int64) error {
	info, err := f.os.Stat()
	if err != nil {
		return err
	}
	f.db.MaxSize = int(max(maxSize, info.Size()+maxSize/8))
	f.db.AllocSize = int(min(int64(f.db.AllocSize), maxSize/16)) // the steps in which it grows
	return nil
}

// used returns the bytes in pages that aren't free, as of the last transaction.
func used(tx *bolt.Tx) int64 {
	stats := tx.DB().Stats()
	return tx.Size() - int64(stats.FreePageN+stats.PendingPageN)*int64(tx.DB().Info().PageSize)
}

// refuse returns an error if an operation would take what is left for others.
func (s share) refuse(used, value, maxSize int64) error {
	if allowed := maxSize / 16 * int64(16-s); s != forAll && used+value > allowed {
		return fmt.Errorf("%w: %d of %d bytes are used, and what is left is for finishing what was begun", agentjob.ErrStoreFull, used, maxSize)
	}
	return nil
}

// full makes bbolt's own refusal match [agentjob.ErrStoreFull], too.
func full(err error) error {
	if errors.Is(err, bolterrors.ErrMaxSizeReached) {
		return fmt.Errorf("%w: %w", agentjob.ErrStoreFull, err)
	}
	return err
}
