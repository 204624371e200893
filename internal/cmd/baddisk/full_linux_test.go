package baddisk

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/agentjob/storetest"
)

// diskTests are what happens to a worker on a small disk.
var diskTests = map[string]func(*world, disk){
	"full before a claim":                             fullBeforeAClaim,
	"full between the claim and the saved reply":      fullBeforeTheSave,
	"full between the saved reply and the end":        fullBeforeTheEnd,
	"full before a restart":                           fullBeforeARestart,
	"full again and again":                            fullAgainAndAgain,
	"full of records, some of which are deleted":      fullOfRecords,
	"only to be read before a start":                  readOnlyBeforeAStart,
	"only to be read while the worker serves":         readOnlyMeanwhile,
	"only to be read between the claim and the reply": readOnlyBeforeTheSave,
}

func fullBeforeAClaim(w *world, d disk) {
	r := w.serve()
	w.online()
	d.fill()
	first := w.ask("first")
	w.notServed(r)
	require.Zero(w, first.Counts().Deliveries)
	d.empty()
	w.answered()
	w.finished(r)
}

func fullBeforeTheSave(w *world, d disk) {
	r := w.serve()
	m := w.ask("wait")
	w.eventually("the handler runs", func() bool { return w.ran(m) })
	d.fill()
	w.letGo()
	w.notServed(r)
	require.Zero(w, m.Counts().Deliveries, "what is not saved is not sent")
	d.empty()
	w.answered()
	w.finished(r)
}

func fullBeforeTheEnd(w *world, d disk) {
	r := w.serve()
	m, fault := w.held()
	d.fill()
	fault.Clear()
	w.eventually("the saved reply is delivered on a full disk", func() bool { return m.Status() == agentjobtest.StatusCompleted })
	w.ask("can't be saved")
	w.notServed(r)
	d.empty()
	w.answered()
	w.finished(r)
}

func fullBeforeARestart(w *world, d disk) {
	r := w.serve()
	m, fault := w.held()
	require.ErrorIs(w, r.end(), agentjob.ErrStopped)
	d.fill()
	fault.Clear()
	r = w.serve()
	w.eventually("the saved reply is delivered on a full disk", func() bool { return m.Status() == agentjobtest.StatusCompleted })
	first := w.ask("first")
	w.notServed(r)
	if w.kind.name == "filestore" { // every write of which needs space
		require.Equal(w, agentjobtest.StatusQueued, first.Status())
	}
	r.Stop()
	_ = r.wait()                     // it may have been in the middle of something
	var lost []*agentjobtest.Message // claimed and not saved: not run again, as after a crash
	for _, m := range w.asked {
		if m.Status() == agentjobtest.StatusProcessing {
			lost = append(lost, m.Message)
		}
	}
	require.LessOrEqual(w, len(lost), 1)
	r = w.serve()
	w.notServed(r)
	require.Equal(w, 1, m.Counts().Deliveries)
	d.empty()
	w.answered(lost...)
	require.NoError(w, r.end())
}

func fullAgainAndAgain(w *world, d disk) {
	r := w.serve()
	for i := range 5 {
		w.online()
		before := w.failed()
		d.fill()
		one, two := w.ask(fmt.Sprint("one ", i)), w.ask(fmt.Sprint("two ", i))
		w.eventually("a write has failed, or there was room in the store's own free pages", func() bool {
			return w.failed() > before || one.Status() == agentjobtest.StatusCompleted && two.Status() == agentjobtest.StatusCompleted
		})
		d.empty()
		w.answered()
	}
	require.NotZero(w, w.failed())
	w.finished(r)
}

func fullOfRecords(w *world, d disk) {
	store, err := w.kind.open(w.path)
	require.NoError(w, err)
	defer store.Close()
	lease, err := store.Acquire(w.Context(), "agent-1")
	require.NoError(w, err)
	put := func(id string) error {
		return lease.Put(w.Context(), agentjob.Record{
			Provider: "agent-1", TaskID: id, State: agentjob.StateSaved, Content: agentjob.Content{Response: []byte(strings.Repeat(id, 500))},
		})
	}
	there := map[string]bool{}
	for i := 0; err == nil; i++ {
		id := fmt.Sprintf("task-%05d", i)
		if err = put(id); err == nil {
			there[id] = true
		}
	}
	require.ErrorIs(w, err, syscall.ENOSPC)
	require.Greater(w, len(there), 50)
	for id := range there {
		if len(there)%2 == 0 || id > "task-00020" {
			require.NoError(w, lease.Delete(w.Context(), id))
			delete(there, id)
		}
	}
	for i := range 10 {
		id := fmt.Sprintf("late-%05d", i)
		require.NoError(w, put(id))
		there[id] = true
	}
	require.NoError(w, lease.Close())
	lease, err = store.Acquire(w.Context(), "agent-1")
	require.NoError(w, err)
	found := map[string]bool{}
	for rec, err := range lease.Records(w.Context()) {
		require.NoError(w, err)
		require.Equal(w, strings.Repeat(rec.TaskID, 500), string(rec.Content.Response))
		found[rec.TaskID] = true
	}
	require.Equal(w, there, found)
}

func conforms(t *testing.T, k kind) {
	disks := map[agentjob.Store]disk{}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) agentjob.Store {
			d := newDisk(t, "64m")
			store, err := k.open(d.store())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			disks[store] = d
			return store
		},
		Fill: func(t testing.TB, store agentjob.Store) func() {
			disks[store].fill()
			return disks[store].empty
		},
	})
}
