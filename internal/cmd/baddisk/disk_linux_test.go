package baddisk

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// childEnv has the name of the test for which this process was made.
const childEnv = "BADDISK_CHILD"

// again is the command that runs this test, or the part of it that was asked for, in a process of its own.
func again(t *testing.T) *exec.Cmd {
	_, part, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	run := "^" + t.Name() + "$"
	if part != "" {
		run += "/" + part
	}
	cmd := exec.Command(os.Args[0], "-test.run="+run, "-test.v", "-test.parallel=32", "-test.timeout="+flag.Lookup("test.timeout").Value.String())
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name())
	return cmd
}

func isChild(t *testing.T) bool { return os.Getenv(childEnv) == t.Name() }

// inNamespaces runs this test again in a user namespace and a mount namespace of its own, where anybody may mount.
func inNamespaces(t *testing.T) {
	cmd := again(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran || bytes.Contains(out, []byte(mountForbidden)) {
		t.Skipf("this kernel lets no ordinary process mount in a namespace of its own (%v): see /proc/sys/user/max_user_namespaces, "+
			"and set kernel.unprivileged_userns_clone=1 on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu; "+
			"a container needs --privileged", err)
	}
	t.Logf("\n%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS", "nothing was run")
}

const mountForbidden = "mounting a tmpfs is forbidden here"

// A disk is a tmpfs.
type disk struct {
	t   testing.TB
	dir string
}

func newDisk(t testing.TB, size string) disk {
	t.Helper()
	d := disk{t, t.TempDir()}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatalf("%s: %v", mountForbidden, err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(d.dir, syscall.MNT_DETACH)) })
	return d
}

func (d disk) store() string   { return filepath.Join(d.dir, "store") }
func (d disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill leaves no byte free.
func (d disk) fill() {
	d.t.Helper()
	file, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(d.t, err)
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		require.ErrorIs(d.t, err, syscall.ENOSPC)
	}
	require.NoError(d.t, file.Close())
}

// empty takes the ballast away, if it is there.
func (d disk) empty() {
	d.t.Helper()
	require.NoError(d.t, os.RemoveAll(d.ballast()))
}

// remount makes the disk one that can only be read, or ends that.
func (d disk) remount(flags uintptr) error {
	return syscall.Mount("tmpfs", d.dir, "tmpfs", syscall.MS_REMOUNT|flags, "")
}

func TestDisk(t *testing.T) {
	t.Parallel() // it mostly waits for the worker's next try
	if !isChild(t) {
		inNamespaces(t)
		return
	}
	each(t, func(t *testing.T, k kind) {
		for name, test := range diskTests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newDisk(t, "1m")
				test(newWorld(t, k, d.store()), d)
			})
		}
		t.Run("conformance on a full disk", func(t *testing.T) { conforms(t, k) })
	})
}
