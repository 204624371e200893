package systrace

import (
	"maps"
	"math"
	"slices"
)

// A node is a file or a folder, whatever its names.
type node struct {
	folder bool
	data   []byte           // of a file: surely on disk
	size   int64            // of a file: as the program sees it
	names  map[string]*node // of a folder: surely on disk
	live   map[string]*node // of a folder: as the program sees it
}

func newFolder() *node {
	return &node{folder: true, names: map[string]*node{}, live: map[string]*node{}}
}

// An Op is a change that is not surely on disk: a write, a truncation or a change of names.
type Op struct {
	Call *Call

	file *node
	off  int64
	data []byte // of a write
	size int64  // of a truncation

	names    []naming
	unsynced map[*node]bool // folders whose sync it waits for
	dropped  bool           // a sync of a write failed: no later one helps
}

// A naming gives a name to a node, or takes it away.
type naming struct {
	folder *node
	name   string
	to     *node // nil: the name is gone
}

// Data returns what a write writes, and where; nil for other changes.
func (o *Op) Data() (data []byte, offset int64) { return o.data, o.off }

// IsName reports whether it is a change of names.
func (o *Op) IsName() bool { return o.names != nil }

// concerns reports whether a sync of n is one of those that make o durable.
func (o *Op) concerns(n *node) bool { return o.file == n || o.unsynced[n] }

// A Disk is what is known of a folder on disk.
type Disk struct {
	top     *node
	pending []*Op
	changes int
}

// Changes grows with every change, and with every sync that made some durable.
func (d *Disk) Changes() int { return d.changes }

// Pending returns the changes that are not surely on disk, oldest first.
func (d *Disk) Pending() []*Op { return slices.Clone(d.pending) }

// add notes a change and shows it to the program.
func (d *Disk) add(o *Op) {
	d.changes++
	d.pending = append(d.pending, o)
	switch {
	case o.names != nil:
		o.unsynced = map[*node]bool{}
		for _, n := range o.names {
			o.unsynced[n.folder] = true
			give(n.folder.live, n)
		}
	case o.data != nil:
		o.file.size = max(o.file.size, o.off+int64(len(o.data)))
	default:
		o.file.size = o.size
	}
}

func give(names map[string]*node, n naming) {
	if n.to == nil {
		delete(names, n.name)
	} else {
		names[n.name] = n.to
	}
}

// covers returns what a sync of n that begins now will make durable.
func (d *Disk) covers(n *node) []*Op {
	var covered []*Op
	for _, o := range d.pending {
		if o.concerns(n) && !o.dropped {
			covered = append(covered, o)
		}
	}
	return covered
}

// sync makes changes durable that a sync of n covered.
func (d *Disk) sync(n *node, covered []*Op) {
	d.changes++
	var left []*Op
	for _, o := range d.pending {
		switch {
		case o.dropped || !slices.Contains(covered, o):
			left = append(left, o)
		case o.names == nil:
			n.data = o.applied(n.data, Fate{Kept: true})
			left = o.supersede(left)
		default:
			if delete(o.unsynced, n); len(o.unsynced) > 0 {
				left = append(left, o)
				continue
			}
			for _, naming := range o.names {
				give(naming.folder.names, naming)
			}
		}
	}
	d.pending = left
}

// supersede takes from older changes what o, which is durable, has overwritten. They are those that an earlier sync dropped.
func (o *Op) supersede(older []*Op) (left []*Op) {
	for _, was := range older {
		if was.file != o.file {
			left = append(left, was)
			continue
		}
		// A length is never left: it is written with every sync of the file.
		from, to := o.off, o.off+int64(len(o.data))
		if o.data == nil {
			from, to = o.size, math.MaxInt64
		}
		end := was.off + int64(len(was.data))
		for _, part := range [][2]int64{{was.off, min(end, from)}, {max(was.off, to), end}} {
			if part[0] < part[1] {
				rest := *was
				rest.off, rest.data = part[0], was.data[part[0]-was.off:part[1]-was.off]
				left = append(left, &rest)
			}
		}
	}
	return left
}

// A Fate is what a power cut makes of a pending change. The zero Fate is that it never reached the disk.
type Fate struct {
	Kept bool // it did
	Torn bool // of a write that was kept: only Keep bytes did
	Keep int
	Long bool // and the file has grown for all of it, with zeros: a block that was allocated and not written
}

// applied returns data after the change o had this fate.
func (o *Op) applied(data []byte, fate Fate) []byte {
	switch {
	case !fate.Kept:
		return data
	case o.data == nil:
		return resized(data, o.size)
	}
	written, size := o.data, int64(len(o.data))
	if fate.Torn {
		written = written[:fate.Keep]
		if !fate.Long {
			size = int64(fate.Keep)
		}
	}
	if size > 0 {
		data = resized(data, max(int64(len(data)), o.off+size))
		copy(data[o.off:], written)
	}
	return data
}

func resized(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data[:size:size]
	}
	return append(data, make([]byte, size-int64(len(data)))...)
}

// Image returns the folder after a power cut, given the fate of each pending
// change. Nil is that none reached the disk.
func (d *Disk) Image(fates []Fate) Image {
	names := map[*node]map[string]*node{}
	writes := map[*node][]int{}
	for i, o := range d.pending {
		if i >= len(fates) || !fates[i].Kept {
			continue
		}
		if o.names == nil {
			writes[o.file] = append(writes[o.file], i)
		}
		for _, n := range o.names {
			if names[n.folder] == nil {
				names[n.folder] = maps.Clone(n.folder.names)
			}
			give(names[n.folder], n)
		}
	}
	image := Image{}
	var walk func(prefix string, n *node)
	walk = func(prefix string, n *node) {
		if !n.folder {
			data := slices.Clone(n.data)
			for _, i := range writes[n] {
				data = d.pending[i].applied(data, fates[i])
			}
			image[prefix] = Entry{Data: data}
			return
		}
		if prefix != "" {
			image[prefix] = Entry{Folder: true}
			prefix += "/"
		}
		entries := n.names
		if changed, ok := names[n]; ok {
			entries = changed
		}
		for name, entry := range entries {
			walk(prefix+name, entry)
		}
	}
	walk("", d.top)
	return image
}
