package baddisk

import (
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func readOnlyBeforeAStart(w *world, d disk) {
	r := w.serve()
	m, fault := w.held()
	require.ErrorIs(w, r.end(), agentjob.ErrStopped)
	require.NoError(w, d.remount(syscall.MS_RDONLY))
	fault.Clear()
	if w.kind.name == "boltstore" { // which needs its file for writing
		w.refused(syscall.EROFS)
	} else {
		r = w.serve()
		w.eventually("the saved reply is delivered", func() bool { return m.Status() == agentjobtest.StatusCompleted })
		w.notServed(r)
		require.Error(w, r.end(), "what became of the reply is not recorded")
	}
	require.NoError(w, d.remount(0))
	r = w.serve()
	w.answered()
	w.finished(r)
}

func readOnlyMeanwhile(w *world, d disk) {
	r := w.serve()
	m, fault := w.held()
	if !w.readOnly(d) {
		return
	}
	fault.Clear()
	w.eventually("the saved reply is delivered", func() bool { return m.Status() == agentjobtest.StatusCompleted })
	w.notServed(r)
	require.NoError(w, d.remount(0))
	w.answered()
	w.finished(r)
}

func readOnlyBeforeTheSave(w *world, d disk) {
	r := w.serve()
	m := w.ask("wait")
	w.eventually("the handler runs", func() bool { return w.ran(m) })
	if !w.readOnly(d) {
		return
	}
	w.letGo()
	w.notServed(r)
	require.Zero(w, m.Counts().Deliveries)
	require.NoError(w, d.remount(0))
	w.answered()
	w.finished(r)
}

// readOnly reports whether the disk could be made so. Linux refuses it while a file is open for writing.
func (w *world) readOnly(d disk) bool {
	w.Helper()
	err := d.remount(syscall.MS_RDONLY)
	if w.kind.name == "boltstore" {
		require.ErrorIs(w, err, syscall.EBUSY)
		return false
	}
	require.NoError(w, err)
	return true
}
