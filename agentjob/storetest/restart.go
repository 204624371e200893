package storetest

import (
	"fmt"

	"github.com/agentjob/agentjob-go/agentjob"
)

func everythingSurvivesARestart(w *world) {
	var want []agentjob.Record
	for i, id := range awkward {
		want = append(want,
			[]agentjob.Record{claimed(provider, id), saved(provider, id, fmt.Sprint("reply ", i)), ended(provider, id)}[i%3])
	}
	for _, rec := range want {
		w.put(w.lease, rec)
	}
	other := w.acquire("agent-2")
	w.put(other, saved("agent-2", "a", "of another"))
	w.close(other)
	if err := w.store.BindProvider(w.ctx, "print-1", provider); err != nil {
		w.Fatalf("BindProvider = %v, want nil", err)
	}
	w.close(w.lease)

	for range 2 {
		w.reopen()
		w.expect(w.lease, want...)
		other := w.acquire("agent-2")
		w.expect(other, saved("agent-2", "a", "of another"))
		if got, err := w.store.Provider(w.ctx, "print-1"); err != nil || got != provider {
			w.Errorf("after a restart Provider = %q, %v, want %q", got, err, provider)
		}
		w.close(other)
		w.close(w.lease)
	}
}

// The last write of each task may be late; after Close it is on disk, and
// no earlier one has overtaken it.
func lateWritesSurviveInOrder(w *world) {
	var want []agentjob.Record
	for i := range 30 {
		id := fmt.Sprint("task-", i)
		w.put(w.lease, claimed(provider, id))
		w.put(w.lease, saved(provider, id, "a reply"))
		w.put(w.lease, ended(provider, id))
		if i%3 > 0 {
			w.remove(w.lease, id)
		}
		if i%3 == 2 {
			w.put(w.lease, ended(provider, id))
			w.put(w.lease, claimed(provider, id))
		}
		switch i % 3 {
		case 0:
			want = append(want, ended(provider, id))
		case 2:
			want = append(want, claimed(provider, id))
		}
	}
	w.close(w.lease)
	w.reopen()
	w.expect(w.lease, want...)
	w.close(w.lease)
}
