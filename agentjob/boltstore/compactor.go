package boltstore

import "time"

// A compactor decides when the file is compacted while the store is open. Its methods
// belong to the writer's goroutine.
type compactor struct {
	home  *home
	stale bool             // something deleted or replaced is still in the file
	due   <-chan time.Time // when to begin
	copy  *compaction      // being made
}

// notice is told of each transaction: what it wrote, and whether it left something stale.
func (c *compactor) notice(batch []*op, stale bool, err error) {
	if c.copy != nil {
		c.copy.wrote(batch, err)
	}
	if stale {
		c.plan(compactDelay)
	}
}

func (c *compactor) plan(delay time.Duration) {
	c.stale = true
	if c.due == nil && c.copy == nil && replacesOpenFiles {
		c.due = time.After(delay)
	}
}

// begin starts a copy. Whatever fails, the store goes on with the file it has; if Close can't
// compact it either, that is reported there.
func (c *compactor) begin() {
	c.due = nil
	var err error
	if c.copy, err = c.home.compact(); err != nil {
		c.copy = nil
		c.plan(compactRetry)
	}
}

// copied has the result of copying; nil while there is none.
func (c *compactor) copied() <-chan error {
	if c.copy == nil {
		return nil
	}
	return c.copy.done
}

func (c *compactor) finish(err error) {
	stale, err := c.copy.finish(err)
	c.copy, c.stale = nil, false
	switch {
	case err != nil:
		c.plan(compactRetry)
	case stale:
		c.plan(compactDelay)
	}
}

func (c *compactor) end() error {
	if c.copy == nil {
		return nil
	}
	return c.copy.abort()
}
