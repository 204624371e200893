package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/agentjob/agentjob-go/agentjob"
)

// The layout of a file: meta holds the format, the sum and the note that something is
// stale, fingerprints the provider of each key, and providers a bucket for each provider with its records by task id.
const (
	metaBucket         = "meta"
	fingerprintsBucket = "fingerprints"
	providersBucket    = "providers"
)

// format 1, without a sum, was never published.
const format = 2

// errNotOurs is of a whole file that this version must leave alone.
var errNotOurs = errors.New("not a store of this version")

// Contents is what is found in a store's file.
type contents struct {
	stale  bool // something deleted or replaced is still in a free page
	sealed int  // records with sealed content

	buckets []string
	format  []byte
	stored  []byte // the sum, as it was written
	sum     uint64 // as it is
}

// inspect reads a store's file. The error matches errDamage or errNotOurs, or
// the file can't be read.
func inspect(file *os.File) (*contents, error) {
	c := &contents{}
	if err := verify(file, c.visit); err != nil {
		return nil, err
	}
	return c, c.judge()
}

func (c *contents) visit(path []string, key, value []byte) error {
	if value == nil {
		if len(path) == 0 {
			c.buckets = append(c.buckets, string(key))
		}
		return nil
	}
	p := place{key: string(key)}
	if len(path) > 0 {
		p.bucket, p.provider = path[0], strings.Join(path[1:], "/")
	}
	switch {
	case p == sumPlace:
		c.stored = bytes.Clone(value)
		return nil
	case p == formatPlace:
		c.format = bytes.Clone(value)
	case p == stalePlace:
		c.stale = true
	case p.bucket == providersBucket && bytes.ContainsRune(value, '\n'): // the end of its envelope
		c.sealed++
	}
	c.sum += p.sum(value)
	return nil
}

func (c *contents) judge() error {
	for _, name := range []string{metaBucket, fingerprintsBucket, providersBucket} {
		if !slices.Contains(c.buckets, name) || c.format == nil {
			return fmt.Errorf("%w: it is a bbolt file of another program; choose another path", errNotOurs)
		}
	}
	switch n, err := strconv.Atoi(string(c.format)); {
	case err == nil && n > format:
		return fmt.Errorf("%w: %w (it has format %d, this one reads %d)", errNotOurs, agentjob.ErrStoreNewer, n, format)
	case n != format:
		return fmt.Errorf("%w: it has format %q, which no published version of this program wrote (this one reads %d)", errNotOurs, c.format, format)
	case len(c.stored) != 8 || binary.BigEndian.Uint64(c.stored) != c.sum:
		return damage("its pages are whole, but the records in them are not those that were written")
	}
	return nil
}
