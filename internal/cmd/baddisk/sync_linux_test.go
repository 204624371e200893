package baddisk

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
)

// Every eighth sync of each thread fails.
func TestSyncsThatFail(t *testing.T) {
	t.Parallel()
	if !isChild(t) {
		underStrace(t, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO:when=3+8")
		return
	}
	each(t, func(t *testing.T, k kind) {
		t.Run("under the worker", func(t *testing.T) {
			t.Parallel()
			workOn(newWorld(t, k, filepath.Join(t.TempDir(), "private", "store")))
		})
		t.Run("the old record stays", func(t *testing.T) {
			t.Parallel()
			oldRecordStays(t, k)
		})
	})
}

func workOn(w *world) {
	for range 2 {
		r := w.persist()
		for i := range 8 {
			w.ask(fmt.Sprint("question ", i))
		}
		w.answered()
		_ = r.end() // it may say that its last writes may be lost
	}
	require.NotZero(w, w.failed())
	r := w.persist()
	w.answered()
	_ = r.end()
}

// persist starts a worker, as often as it needs until it claims.
func (w *world) persist() *running {
	w.Helper()
	for range 100 {
		r, err := w.start()
		if err == nil {
			w.eventually("the worker claims or has ended", func() bool {
				return r.Status().Open || r.Status().Phase == agentjob.PhaseStopped
			})
			if r.Status().Phase != agentjob.PhaseStopped {
				return r
			}
			err = r.wait()
		}
		require.NotErrorIs(w, err, agentjob.ErrStoreDamaged)
	}
	w.Fatal("no worker can start")
	return nil
}

// oldRecordStays replaces a record again and again, and looks which is there.
func oldRecordStays(t *testing.T, k kind) {
	path := filepath.Join(t.TempDir(), "private", "store")
	store, err := k.open(path)
	for n := 0; err != nil && n < 100; n++ {
		require.ErrorContains(t, err, syscall.EIO.Error())
		store, err = k.open(path)
	}
	require.NoError(t, err)
	defer store.Close() // may say that the last deletes may be lost
	lease, err := store.Acquire(t.Context(), "agent-1")
	for n := 0; err != nil && n < 100; n++ {
		lease, err = store.Acquire(t.Context(), "agent-1")
	}
	require.NoError(t, err)
	there, failed := "", 0
	for n := range 200 {
		text := fmt.Sprint("reply ", n)
		switch err := lease.Put(t.Context(), agentjob.Record{
			Provider: "agent-1", TaskID: "task", State: agentjob.StateSaved, Content: agentjob.Content{Response: []byte(text)},
		}); {
		case err == nil:
			there = text
		case strings.Contains(err.Error(), "can't be put back"), strings.Contains(err.Error(), "it is there until a power cut"):
			there = text // a second sync failed, too, and the error says what that means
		default:
			require.ErrorContains(t, err, syscall.EIO.Error()) // bbolt keeps the text only
			failed++
		}
		found := ""
		for rec, err := range lease.Records(t.Context()) {
			require.NoError(t, err)
			found = string(rec.Content.Response)
		}
		require.Equal(t, there, found)
	}
	require.Greater(t, failed, 10)
}

// underStrace runs this test again under strace, which meddles with its calls.
func underStrace(t *testing.T, args ...string) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("this needs strace: apt-get install strace")
	}
	cmd := again(t)
	cmd.Args = append(append([]string{"strace", "-f", "-qq", "-o", "/dev/null"}, args...), cmd.Args...)
	cmd.Path = strace
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("PTRACE")) {
		t.Skipf("strace is not allowed to trace here; a container needs --cap-add=SYS_PTRACE: %s", out)
	}
	t.Logf("\n%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS", "nothing was run")
}
