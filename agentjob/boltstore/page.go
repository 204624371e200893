package boltstore

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// The parts of bbolt's file format that matter here. Numbers are in the machine's byte order.
const (
	pageHeader    = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementHeader = 16 // of a branch: pos, ksize uint32, child uint64; of a leaf: flags, pos, ksize, vsize uint32
	bucketHeader  = 16 // root uint64, sequence uint64; a page follows if root is 0
	metaSize      = 56 // magic, version, page size, flags uint32, root, sequence, freelist, pages, txid uint64; a sum follows

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketFlag   = 0x01

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	maxDepth    = 64 // pages above a page; real ones have fewer than ten
)

var order = binary.NativeEndian

// A page is the bytes of a page with its overflow, or of one inside a value.
type page struct {
	id   uint64
	data []byte
}

func (p page) flags() uint16 { return order.Uint16(p.data[8:]) }
func (p page) count() int    { return int(order.Uint16(p.data[10:])) }

// span returns n bytes of the page at an offset.
func (p page) span(off, n uint64) ([]byte, error) {
	if off > uint64(len(p.data)) || n > uint64(len(p.data))-off {
		return nil, damage("page %d: %d bytes at %d are not in it", p.id, n, off)
	}
	return p.data[off : off+n : off+n], nil
}

// element returns the header of the nth element and the data that it points to: a key, with a value if it is a leaf's.
func (p page) element(n int) (header, data []byte, err error) {
	at := uint64(pageHeader + n*elementHeader)
	if header, err = p.span(at, elementHeader); err != nil {
		return nil, nil, err
	}
	pos, size := order.Uint32(header), uint64(order.Uint32(header[4:]))
	if p.flags() == leafPage {
		pos, size = order.Uint32(header[4:]), uint64(order.Uint32(header[8:]))+uint64(order.Uint32(header[12:]))
	}
	data, err = p.span(at+uint64(pos), size)
	return header, data, err
}

type boltMeta struct{ pageSize, root, freelist, pages, txid uint64 }

func readMeta(file io.ReaderAt, at, size int64) (boltMeta, error) {
	var buf [pageHeader + metaSize + 8]byte
	if size < at+int64(len(buf)) {
		return boltMeta{}, damage("the file has only %d bytes", size)
	}
	if _, err := file.ReadAt(buf[:], at); err != nil {
		return boltMeta{}, err
	}
	data := buf[pageHeader:]
	sum := fnv.New64a()
	sum.Write(data[:metaSize])
	m := boltMeta{
		pageSize: uint64(order.Uint32(data[8:])), root: order.Uint64(data[16:]),
		freelist: order.Uint64(data[32:]), pages: order.Uint64(data[40:]), txid: order.Uint64(data[48:]),
	}
	switch {
	case order.Uint32(data) != boltMagic, order.Uint32(data[4:]) != boltVersion:
		return m, damage("it is no bbolt file, or its start was overwritten")
	case order.Uint64(data[metaSize:]) != sum.Sum64():
		return m, damage("the description at byte %d has a wrong checksum", at)
	case m.pageSize < 1024 || m.pageSize > 1<<16 || m.pageSize&(m.pageSize-1) != 0 || m.pages < 3:
		return m, damage("it has %d pages of %d bytes, which can't be", m.pages, m.pageSize)
	}
	return m, nil
}
