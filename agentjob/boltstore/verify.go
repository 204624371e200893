package boltstore

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// bbolt trusts its file: a damaged page makes it panic, fault, recurse for ever or lose what
// is behind it. So a file is read here first, by plain reads, and bbolt gets only what is whole.

// errDamage is what was found in a file; other errors are of reading it.
var errDamage = errors.New("damage")

func damage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamage, fmt.Sprintf(format, args...))
}

// A walk reads a whole file, each page once.
type walk struct {
	file     io.ReaderAt
	pageSize uint64
	pages    uint64 // that are in use, free ones too
	seen     []bool
	visit    func(path []string, key, value []byte) error
}

// verify reads a bbolt file and calls visit for each bucket, with a nil value, and each entry. It
// returns an error that matches errDamage if the file isn't whole.
func verify(file *os.File, visit func(path []string, key, value []byte) error) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	first, err := readMeta(file, 0, info.Size())
	if err != nil {
		return err
	}
	// Both must be good. bbolt would go on with the older one, which has not
	// seen the last write; but a disk writes the sector that holds it whole or not at all, so
	// no crash leaves one bad.
	second, err := readMeta(file, int64(first.pageSize), info.Size())
	if err != nil {
		return err
	}
	if second.txid > first.txid {
		first = second
	}
	if first.pages > uint64(info.Size())/first.pageSize {
		return damage("the file was cut from at least %d pages of %d bytes to %d bytes", first.pages, first.pageSize, info.Size())
	}
	w := &walk{file: file, pageSize: first.pageSize, pages: first.pages, seen: make([]bool, first.pages), visit: visit}
	w.seen[0], w.seen[1] = true, true
	if err := w.freelist(first.freelist); err != nil {
		return err
	}
	return w.bucket(first.root, nil, 0)
}

// take notes that pages are in use.
func (w *walk) take(id, n uint64) error {
	if id >= w.pages || n > w.pages-id {
		return damage("page %d is outside the file", id)
	}
	for i := id; i < id+n; i++ {
		if w.seen[i] {
			return damage("page %d is used twice", i)
		}
		w.seen[i] = true
	}
	return nil
}

func (w *walk) read(id uint64) (page, error) {
	if id >= w.pages {
		return page{}, damage("page %d is outside the file", id)
	}
	p := page{id, make([]byte, w.pageSize)}
	if err := w.readAt(p.data, id); err != nil {
		return page{}, err
	}
	overflow := uint64(order.Uint32(p.data[12:]))
	if is := order.Uint64(p.data); is != id {
		return page{}, damage("page %d says that it is page %d", id, is)
	}
	if err := w.take(id, 1+overflow); err != nil {
		return page{}, err
	}
	if overflow > 0 {
		p.data = append(make([]byte, 0, (1+overflow)*w.pageSize), p.data...)[:(1+overflow)*w.pageSize]
		return p, w.readAt(p.data[w.pageSize:], id+1)
	}
	return p, nil
}

func (w *walk) readAt(data []byte, id uint64) error {
	if _, err := w.file.ReadAt(data, int64(id*w.pageSize)); err != nil {
		return fmt.Errorf("reading page %d: %w", id, err)
	}
	return nil
}

// freelist marks the free pages, so that one in use is noticed.
func (w *walk) freelist(id uint64) error {
	p, err := w.read(id)
	if err != nil {
		return err
	}
	if p.flags() != freelistPage {
		return damage("page %d should list the free pages and doesn't", id)
	}
	count, at := uint64(p.count()), uint64(pageHeader)
	if count == 0xFFFF { // the true one follows
		data, err := p.span(at, 8)
		if err != nil {
			return err
		}
		count, at = order.Uint64(data), at+8
	}
	if count > w.pages {
		return damage("page %d lists %d free pages of %d", id, count, w.pages)
	}
	ids, err := p.span(at, count*8)
	if err != nil {
		return err
	}
	for last := uint64(1); len(ids) > 0; ids = ids[8:] {
		free := order.Uint64(ids)
		if free <= last {
			return damage("the free pages are not in order: %d after %d", free, last)
		}
		if err := w.take(free, 1); err != nil {
			return err
		}
		last = free
	}
	return nil
}

// bucket walks the pages of a bucket.
func (w *walk) bucket(root uint64, path []string, depth int) error {
	p, err := w.read(root)
	if err != nil {
		return err
	}
	return w.page(p, path, nil, nil, depth)
}

// page walks a page whose keys must be from least on and before end; nil is no bound.
func (w *walk) page(p page, path []string, least, end []byte, depth int) error {
	if depth > maxDepth {
		return damage("page %d is deeper than can be", p.id)
	}
	switch p.flags() {
	case leafPage:
		return w.leaf(p, path, least, end, depth)
	case branchPage:
		return w.branch(p, path, least, end, depth)
	}
	return damage("page %d is of no known kind (%#x)", p.id, p.flags())
}

// inOrder checks a key against the one before it, or the least if it is the first, and the end.
func inOrder(p page, first bool, least, key, end []byte) error {
	after := string(key) > string(least) || first && string(key) == string(least)
	if least != nil && !after || end != nil && string(key) >= string(end) {
		return damage("page %d has its keys in the wrong order", p.id)
	}
	return nil
}

func (w *walk) branch(p page, path []string, least, end []byte, depth int) error {
	n := p.count()
	if n == 0 {
		return damage("page %d leads nowhere", p.id)
	}
	for i := range n {
		header, key, err := p.element(i)
		if err != nil {
			return err
		}
		if err := inOrder(p, i == 0, least, key, end); err != nil {
			return err
		}
		next := end
		if i+1 < n {
			if _, next, err = p.element(i + 1); err != nil {
				return err
			}
		}
		child, err := w.read(order.Uint64(header[8:]))
		if err != nil {
			return err
		}
		if err := w.page(child, path, key, next, depth+1); err != nil {
			return err
		}
		least = key
	}
	return nil
}

func (w *walk) leaf(p page, path []string, least, end []byte, depth int) error {
	for i := range p.count() {
		header, data, err := p.element(i)
		if err != nil {
			return err
		}
		key, value := data[:order.Uint32(header[8:])], data[order.Uint32(header[8:]):]
		if err := inOrder(p, i == 0, least, key, end); err != nil {
			return err
		}
		least = key
		switch order.Uint32(header) {
		case 0:
			err = w.visit(path, key, value)
		case bucketFlag:
			err = w.child(p, path, key, value, depth)
		default:
			err = damage("page %d has an entry of no known kind (%#x)", p.id, order.Uint32(header))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// child walks a bucket within a bucket. A small one is a page within the value.
func (w *walk) child(p page, path []string, key, value []byte, depth int) error {
	if err := w.visit(path, key, nil); err != nil {
		return err
	}
	path = append(path[:len(path):len(path)], string(key))
	if len(value) < bucketHeader {
		return damage("page %d has a bucket without a root", p.id)
	}
	root, inline := order.Uint64(value), page{p.id, value[bucketHeader:]}
	switch {
	case root != 0:
		return w.bucket(root, path, depth+1)
	case len(inline.data) < pageHeader || inline.flags() != leafPage || order.Uint64(inline.data) != 0 || order.Uint32(inline.data[12:]) != 0:
		return damage("page %d has a small bucket that is none", p.id)
	}
	return w.leaf(inline, path, nil, nil, depth+1)
}
