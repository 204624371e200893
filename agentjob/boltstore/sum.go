package boltstore

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"
)

// A place is where an entry is: a later operation on the same place makes an earlier one
// obsolete. Only places in the bucket providers have a provider.
type place struct{ bucket, provider, key string }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The sum of a store is that of its entries, whatever their order: so it is kept by adding what
// comes and subtracting what goes, and one that was altered, lost or moved by damage is noticed. It is no
// protection against a person. Two checksums that processors compute fast are mixed, since sums of
// such alone could miss that two entries were swapped.
func (p place) sum(value []byte) uint64 {
	var buf [256]byte
	head := buf[:0]
	for _, part := range []string{p.bucket, p.provider, p.key} {
		head = append(binary.AppendUvarint(head, uint64(len(part))), part...)
	}
	one := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, value)
	two := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, value)
	sum := uint64(one)<<32 | uint64(two)
	for range 2 { // so that each bit depends on all
		sum ^= sum >> 33
		sum *= 0xff51afd7ed558ccd
	}
	return sum ^ sum>>33
}

var (
	sumPlace    = place{bucket: metaBucket, key: "sum"}
	formatPlace = place{bucket: metaBucket, key: "format"}
	stalePlace  = place{bucket: metaBucket, key: "stale"}
)

// An edit is a transaction that keeps the sum. It also notes in the file that something was
// deleted or replaced, which a free page still holds until the file is compacted.
type edit struct {
	tx    *bolt.Tx
	sum   uint64
	stale bool
}

func newEdit(tx *bolt.Tx) *edit {
	e := &edit{tx: tx}
	if data := sumPlace.in(tx).Get([]byte(sumPlace.key)); len(data) == 8 {
		e.sum = binary.BigEndian.Uint64(data)
	}
	return e
}

// finish writes the sum and the note.
func (e *edit) finish() error {
	meta := sumPlace.in(e.tx)
	if e.stale && meta.Get([]byte(stalePlace.key)) == nil {
		if err := e.put(stalePlace, []byte("yes")); err != nil {
			return err
		}
	}
	return meta.Put([]byte(sumPlace.key), binary.BigEndian.AppendUint64(nil, e.sum))
}

// in returns the bucket of the place, or nil if there is none.
func (p place) in(tx *bolt.Tx) *bolt.Bucket {
	bucket := tx.Bucket([]byte(p.bucket))
	if bucket != nil && p.bucket == providersBucket {
		return bucket.Bucket([]byte(p.provider))
	}
	return bucket
}

func (e *edit) put(p place, value []byte) error {
	bucket := p.in(e.tx)
	if bucket == nil {
		var err error
		if bucket, err = e.tx.Bucket([]byte(providersBucket)).CreateBucket([]byte(p.provider)); err != nil {
			return err
		}
	}
	var gone uint64
	old := bucket.Get([]byte(p.key))
	if old != nil {
		if bytes.Equal(old, value) {
			return nil // the transaction is written all the same
		}
		gone = p.sum(old)
	}
	if err := bucket.Put([]byte(p.key), value); err != nil {
		return err
	}
	e.sum += p.sum(value) - gone
	e.stale = e.stale || old != nil
	return nil
}

func (e *edit) remove(p place) error {
	bucket := p.in(e.tx)
	if bucket == nil {
		return nil
	}
	old := bucket.Get([]byte(p.key))
	if old == nil {
		return nil
	}
	gone := p.sum(old)
	if err := bucket.Delete([]byte(p.key)); err != nil {
		return err
	}
	e.sum -= gone
	e.stale = true
	return nil
}
