package systrace

import (
	"fmt"
	"path"
	"strings"
)

// A Replay applies the calls of a trace to the disk below a folder.
type Replay struct {
	folder string
	disk   *Disk
	files  map[int64]*opened
	syncs  map[*Call][]*Op // what those under way will make durable
}

// An opened is an open file, which several descriptors may share.
type opened struct {
	node     *node
	at       int64
	appended bool
}

// NewReplay returns a replay that begins with an empty folder, given by its absolute path without symbolic links.
func NewReplay(folder string) *Replay {
	return &Replay{folder: path.Clean(folder), disk: &Disk{top: newFolder()}, files: map[int64]*opened{}, syncs: map[*Call][]*Op{}}
}

// Disk returns the disk as of the last step.
func (r *Replay) Disk() *Disk { return r.disk }

// Holds reports whether a descriptor is of a file in the folder.
func (r *Replay) Holds(fd int64) bool { return r.files[fd] != nil }

// An effect is what a call does, at its end unless the table says otherwise.
type effect func(*Replay, *Call) error

// beginnings take effect when the call begins: another thread may be given the number of a descriptor
// before its close is seen to return, and a sync need not cover later writes.
var beginnings = map[string]effect{
	"close": (*Replay).close,
	"fsync": (*Replay).beginSync, "fdatasync": (*Replay).beginSync,
}

// ends take effect when the call has worked.
var ends = map[string]effect{
	"openat": (*Replay).openat, "mkdirat": (*Replay).mkdirat, "unlinkat": (*Replay).unlinkat,
	"renameat": (*Replay).renameat, "renameat2": (*Replay).renameat, "linkat": (*Replay).linkat,
	"write": (*Replay).write, "pwrite64": (*Replay).write, "ftruncate": (*Replay).ftruncate,
	"read": (*Replay).read, "lseek": (*Replay).lseek,
	"dup": (*Replay).dup, "dup2": (*Replay).dup, "dup3": (*Replay).dup, "fcntl": (*Replay).fcntl,
	"mmap": (*Replay).mmap,
}

// strangers change files in ways that the model does not know, by path or through the descriptors at
// these arguments. They are recorded to be noticed.
var strangers = map[string][]int{
	"open": nil, "creat": nil, "openat2": nil, "mkdir": nil, "rmdir": nil, "unlink": nil, "rename": nil, "link": nil,
	"symlink": nil, "symlinkat": nil, "truncate": nil,
	"writev": {0}, "pwritev": {0}, "pwritev2": {0}, "fallocate": {0}, "sendfile": {0}, "copy_file_range": {2}, "splice": {2},
}

// Apply does what a step does. An error is a call that the model does not know.
func (r *Replay) Apply(step Step) error {
	call := step.Call
	switch {
	case !step.End:
		if begin := beginnings[call.Name]; begin != nil {
			return begin(r, call)
		}
	case call.Name == "fsync", call.Name == "fdatasync":
		return r.endSync(call)
	case call.OK():
		if end := ends[call.Name]; end != nil {
			return end(r, call)
		}
		return r.stranger(call)
	}
	return nil
}

// stranger refuses a call that changes the folder or a file in it.
func (r *Replay) stranger(call *Call) error {
	for _, i := range strangers[call.Name] {
		if f, err := r.file(call, i); f != nil || err != nil {
			return unknown(call)
		}
	}
	for i := range call.Args {
		if text, err := call.Bytes(i); err == nil && r.inside(string(text)) {
			return unknown(call)
		}
	}
	return nil
}

func unknown(call *Call) error {
	return fmt.Errorf("%s: the model of the disk does not know this call; teach it", call)
}

// maxSize bounds a file: they are kept in memory.
const maxSize = 1 << 30

func impossible(call *Call) error {
	return fmt.Errorf("%s: its sizes can't be, or the file is larger than 1 GiB", call)
}

func (r *Replay) inside(p string) bool {
	p = path.Clean(p)
	return p == r.folder || strings.HasPrefix(p, r.folder+"/")
}

func (r *Replay) file(call *Call, i int) (*opened, error) {
	fd, err := call.Int(i)
	return r.files[fd], err
}

func (r *Replay) close(call *Call) error {
	fd, err := call.Int(0)
	delete(r.files, fd)
	return err
}

func (r *Replay) beginSync(call *Call) error {
	f, err := r.file(call, 0)
	if f != nil {
		r.syncs[call] = r.disk.covers(f.node)
	}
	return err
}

func (r *Replay) endSync(call *Call) error {
	covered := r.syncs[call]
	delete(r.syncs, call)
	f, err := r.file(call, 0)
	switch {
	case err != nil || f == nil:
		return err
	case call.OK():
		r.disk.sync(f.node, covered)
	case call.Errno != "":
		for _, o := range covered {
			o.dropped = !o.IsName()
		}
	}
	return nil
}

func (r *Replay) write(call *Call) error {
	f, err := r.file(call, 0)
	if f == nil || err != nil || call.Ret == 0 {
		return err
	}
	data, err := call.Bytes(1)
	if err != nil {
		return err
	}
	at := f.at
	if call.Name == "pwrite64" {
		if at, err = call.Int(3); err != nil {
			return err
		}
	}
	if f.appended {
		at = f.node.size
	}
	if call.Ret > int64(len(data)) || at < 0 || at > maxSize {
		return impossible(call)
	}
	if call.Name == "write" {
		f.at = at + call.Ret
	}
	r.disk.add(&Op{Call: call, file: f.node, off: at, data: data[:call.Ret]})
	return nil
}

func (r *Replay) ftruncate(call *Call) error {
	f, err := r.file(call, 0)
	if f == nil || err != nil {
		return err
	}
	size, err := call.Int(1)
	if err != nil {
		return err
	}
	if size < 0 || size > maxSize {
		return impossible(call)
	}
	r.disk.add(&Op{Call: call, file: f.node, size: size})
	return nil
}

func (r *Replay) read(call *Call) error {
	f, err := r.file(call, 0)
	if f != nil {
		f.at += call.Ret
	}
	return err
}

func (r *Replay) lseek(call *Call) error {
	f, err := r.file(call, 0)
	if f != nil {
		f.at = call.Ret
	}
	return err
}

func (r *Replay) dup(call *Call) error {
	f, err := r.file(call, 0)
	if f != nil {
		r.files[call.Ret] = f
	} else {
		delete(r.files, call.Ret) // dup2 closes what it replaces
	}
	return err
}

func (r *Replay) fcntl(call *Call) error {
	if strings.HasPrefix(call.arg(1), "F_DUPFD") {
		return r.dup(call)
	}
	return nil
}

func (r *Replay) mmap(call *Call) error {
	if !call.Has(2, "PROT_WRITE") || !call.Has(3, "MAP_SHARED") {
		return nil
	}
	if f, err := r.file(call, 4); f != nil || err != nil {
		return unknown(call)
	}
	return nil
}
