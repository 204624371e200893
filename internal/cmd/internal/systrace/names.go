package systrace

import (
	"fmt"
	"path"
	"strings"
)

// A place is a name in a folder of the replay's.
type place struct {
	folder *node
	name   string // "" is the folder itself
}

func (p place) node() *node {
	if p.name == "" {
		return p.folder
	}
	return p.folder.live[p.name]
}

// place finds what two arguments, a folder's descriptor and a path, name. It returns nil if that is outside.
func (r *Replay) place(call *Call, fd, name int) (*place, error) {
	text, err := call.Bytes(name)
	if err != nil {
		return nil, err
	}
	at := r.disk.top
	below := string(text)
	switch {
	case path.IsAbs(below):
		if !r.inside(below) {
			return nil, nil
		}
		below = strings.TrimPrefix(path.Clean(below), r.folder)
	case call.arg(fd) == "AT_FDCWD":
		return nil, fmt.Errorf("%s: %q is a relative path; run the program with absolute ones", call, below)
	default:
		f, err := r.file(call, fd)
		if f == nil || err != nil {
			return nil, err
		}
		at = f.node
	}
	below = strings.Trim(path.Clean("/"+below), "/")
	parent, last := path.Split(below)
	for part := range strings.SplitSeq(strings.Trim(parent, "/"), "/") {
		if part == "" {
			continue
		}
		if at = at.live[part]; at == nil || !at.folder {
			return nil, fmt.Errorf("%s: %q is in a folder that was never made", call, below)
		}
	}
	return &place{at, last}, nil
}

func (r *Replay) rename(call *Call, names ...naming) error {
	for _, n := range names {
		if n.name == "" {
			return unknown(call) // the whole folder
		}
	}
	r.disk.add(&Op{Call: call, names: names})
	return nil
}

func (r *Replay) openat(call *Call) error {
	p, err := r.place(call, 0, 1)
	if p == nil || err != nil {
		return err
	}
	if call.Has(2, "O_SYNC", "O_DSYNC", "__O_SYNC", "O_TMPFILE", "__O_TMPFILE") {
		return unknown(call)
	}
	n := p.node()
	switch {
	case n == nil && call.Has(2, "O_CREAT"):
		n = &node{}
		if err := r.rename(call, naming{p.folder, p.name, n}); err != nil {
			return err
		}
	case n == nil:
		return fmt.Errorf("%s: it opened a file that was never made", call)
	case call.Has(2, "O_TRUNC") && n.size > 0:
		r.disk.add(&Op{Call: call, file: n})
	}
	r.files[call.Ret] = &opened{node: n, appended: call.Has(2, "O_APPEND")}
	return nil
}

func (r *Replay) mkdirat(call *Call) error {
	p, err := r.place(call, 0, 1)
	if p == nil || err != nil {
		return err
	}
	return r.rename(call, naming{p.folder, p.name, newFolder()})
}

func (r *Replay) unlinkat(call *Call) error {
	p, err := r.place(call, 0, 1)
	if p == nil || err != nil {
		return err
	}
	return r.rename(call, naming{p.folder, p.name, nil})
}

func (r *Replay) renameat(call *Call) error {
	from, to, err := r.places(call)
	if from == nil || err != nil {
		return err
	}
	if n := call.arg(4); n != "" && n != "0" && n != "RENAME_NOREPLACE" {
		return unknown(call)
	}
	n := from.node()
	if n == to.node() {
		return nil // two names of one file: renaming does nothing
	}
	return r.rename(call, naming{from.folder, from.name, nil}, naming{to.folder, to.name, n})
}

func (r *Replay) linkat(call *Call) error {
	from, to, err := r.places(call)
	if from == nil || err != nil {
		return err
	}
	return r.rename(call, naming{to.folder, to.name, from.node()})
}

// places are those of a call that names two.
func (r *Replay) places(call *Call) (from, to *place, err error) {
	if from, err = r.place(call, 0, 1); err != nil {
		return nil, nil, err
	}
	if to, err = r.place(call, 2, 3); err != nil {
		return nil, nil, err
	}
	if (from == nil) != (to == nil) {
		return nil, nil, unknown(call) // into the folder or out of it
	}
	if from != nil && from.node() == nil {
		return nil, nil, fmt.Errorf("%s: it names a file that was never made", call)
	}
	return from, to, nil
}
