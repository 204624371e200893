package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// expect compares the lease's records with the wanted ones, completely.
func (w *world) expect(lease agentjob.Lease, want ...agentjob.Record) {
	w.Helper()
	got := w.records(lease)
	for _, rec := range want {
		found, ok := got[rec.TaskID]
		if !ok {
			w.Errorf("the record of task %.40q is missing", rec.TaskID)
		} else if !reflect.DeepEqual(found, rec) {
			w.Errorf("the record of task %.40q came back as\n%.600s\nwant\n%.600s", rec.TaskID, show(found), show(rec))
		}
		delete(got, rec.TaskID)
	}
	if len(got) > 0 {
		w.Errorf("there are records of tasks %.200q that should not be", slices.Collect(maps.Keys(got)))
	}
}

func show(rec agentjob.Record) string { return fmt.Sprintf("%#v", rec) }

func recordsComeBackExactly(w *world) {
	number := func(n int64) *int64 { return &n }
	contents := map[string]agentjob.Content{
		"nothing":          {},
		"empty task":       {Task: json.RawMessage{}},
		"empty response":   {Response: []byte{}},
		"empty usage":      {Usage: &agentjob.Usage{}},
		"spaced task":      {Task: json.RawMessage("{ \"a\" : 1.0,\n\t\"b\": \"<&>\\u00e9\" }")},
		"task not JSON":    {Task: json.RawMessage("\xff{")},
		"null task":        {Task: json.RawMessage("null")},
		"any byte":         {Response: []byte("\x00\x01\n\r\xff\xfe\"\\</script>\u2028")},
		"large response":   {Response: bytes.Repeat([]byte("0123456789abcdef"), 1<<16)}, // 1 MB
		"usage":            {Usage: &agentjob.Usage{Model: "model é", InputTokens: number(1<<53 + 1), OutputTokens: number(0)}},
		"everything":       {Task: json.RawMessage(`{}`), Response: []byte(`{"text":"hi"}`), Usage: &agentjob.Usage{OutputTokens: number(7)}},
		"usage of a model": {Usage: &agentjob.Usage{Model: "m"}},
	}
	var want []agentjob.Record
	for name, content := range contents {
		rec := claimed(provider, name)
		rec.Content = content
		want = append(want, rec)
	}
	want = append(want,
		agentjob.Record{Provider: provider, TaskID: "only a state", State: agentjob.StateClaimed},
		agentjob.Record{Provider: provider, TaskID: "free", State: agentjob.StateClaimed, Amount: new(usdc.Amount(0))},
		agentjob.Record{
			Provider: provider, TaskID: "all fields", ChatID: "chat\n\x00é", State: agentjob.StateEnded,
			ClaimedAt: time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC),
			SavedAt:   time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC),
			EndedAt:   time.Date(1969, 12, 31, 23, 59, 59, 10, time.UTC),
			Deadline:  time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
			Resumed:   3, End: agentjob.EndRejected, Status: 409, Reason: "said \"no\"\xff\n",
			Amount:  new(usdc.Amount(math.MaxUint64)),
			Content: agentjob.Content{Response: []byte("kept")},
		})
	for _, rec := range want {
		w.put(w.lease, rec)
	}
	w.expect(w.lease, want...)

	east := claimed(provider, "in another zone")
	utc := east
	east.ClaimedAt = east.ClaimedAt.In(time.FixedZone("east", 5*3600+1800))
	w.put(w.lease, east)
	w.expect(w.lease, append(want, utc)...)
}

// awkward are ids that a file name, a key or a query might not take, or take for one another.
var awkward = []string{
	"a", "A", "a/b", "a/b/", "/", "//", ".", "..", "../../etc/passwd", `..\..\x`, "a\x00b", "\x00", "a\x00", "a ", " a",
	"con", "nul.txt", "a:b", "%2e%2e", "%", "*", "'; DROP TABLE records; --", "é", "e\u0301", "日本語", "🤖", "\xff\xfe", "\xff", "\ufffd",
	"\n", "-rf", strings.Repeat("long/", 820), strings.Repeat("x", 4095), strings.Repeat("x", 4096),
}

func everyIDIsPossible(w *world) {
	var want []agentjob.Record
	for i, id := range awkward {
		want = append(want, saved(provider, id, fmt.Sprint("reply ", i)))
	}
	for _, rec := range want {
		w.put(w.lease, rec)
	}
	w.expect(w.lease, want...)
	for i := 0; i < len(awkward); i += 2 {
		w.remove(w.lease, awkward[i])
	}
	w.expect(w.lease, slices.DeleteFunc(want, func(rec agentjob.Record) bool { return slices.Index(awkward, rec.TaskID)%2 == 0 })...)

	for i, id := range awkward {
		lease := w.acquire(id)
		w.put(lease, saved(id, "task", fmt.Sprint("of provider ", i)))
		if err := w.store.BindProvider(w.ctx, id, id); err != nil {
			w.Errorf("BindProvider(%.40q) = %v, want nil", id, err)
		}
		w.close(lease)
	}
	for i, id := range awkward {
		w.expect(w.acquire(id), saved(id, "task", fmt.Sprint("of provider ", i)))
		if got, err := w.store.Provider(w.ctx, id); err != nil || got != id {
			w.Errorf("Provider(%.40q) = %.40q, %v, want the same", id, got, err)
		}
	}
}

func putReplaces(w *world) {
	w.put(w.lease, claimed(provider, "task-1"))
	w.put(w.lease, claimed(provider, "task-2"))
	full := saved(provider, "task-1", "a reply")
	full.Reason, full.Content.Usage = "why", &agentjob.Usage{Model: "m"}
	w.put(w.lease, full)
	w.expect(w.lease, full, claimed(provider, "task-2"))

	// Nothing of the old record stays behind.
	w.put(w.lease, ended(provider, "task-1"))
	w.expect(w.lease, ended(provider, "task-1"), claimed(provider, "task-2"))
}

func putOfAnotherProviderIsRefused(w *world) {
	if err := w.lease.Put(w.ctx, claimed("agent-2", "task-1")); err == nil {
		w.Errorf("Put of a record of another provider = nil, want an error")
	}
	w.expect(w.lease)
	w.expect(w.acquire("agent-2"))
}

func putCopies(w *world) {
	rec := saved(provider, "task-1", "before")
	w.put(w.lease, rec)
	copy(rec.Content.Response, "XXXXXX")
	w.expect(w.lease, saved(provider, "task-1", "before"))
	copy(w.records(w.lease)["task-1"].Content.Response, "YYYYYY")
	w.expect(w.lease, saved(provider, "task-1", "before"))
}

func failedPutKeepsTheOldRecord(w *world) {
	old := saved(provider, "task-1", "kept")
	w.put(w.lease, old)
	for name, change := range map[string]func(*agentjob.Record){
		"no state":         func(r *agentjob.Record) { r.State = "" },
		"an unknown state": func(r *agentjob.Record) { r.State = "forgotten" },
		"no task":          func(r *agentjob.Record) { r.TaskID = "" },
		"no provider":      func(r *agentjob.Record) { r.Provider = "" },
	} {
		rec := ended(provider, "task-1")
		change(&rec)
		if err := w.lease.Put(w.ctx, rec); err == nil {
			w.Errorf("Put of a record with %s = nil, want an error", name)
		}
		w.expect(w.lease, old)
	}
}

func fullDiskKeepsWhatIsThere(w *world) {
	old, gone := saved(provider, "task-1", "kept"), saved(provider, "task-2", strings.Repeat("large ", 20_000))
	w.put(w.lease, old)
	w.put(w.lease, gone)
	empty := w.harness.Fill(w.TB, w.store)
	defer empty() // once more, if the check ends early
	for range 3 {
		if err := w.lease.Put(w.ctx, saved(provider, "task-1", strings.Repeat("too large", 1<<17))); err == nil {
			w.Errorf("Put on a full disk = nil, want an error")
		}
		w.expect(w.lease, old, gone)
	}
	w.remove(w.lease, "task-2")
	w.expect(w.lease, old)
	empty()
	large := saved(provider, "task-1", strings.Repeat("large ", 20_000))
	w.put(w.lease, large)
	w.expect(w.lease, large)
	w.close(w.lease)
	w.expect(w.acquire(provider), large)
}

func deleteRemoves(w *world) {
	w.remove(w.lease, "never there")
	w.put(w.lease, claimed(provider, "task-1"))
	w.put(w.lease, claimed(provider, "task-10"))
	w.remove(w.lease, "task-1")
	w.remove(w.lease, "task-1")
	w.expect(w.lease, claimed(provider, "task-10"))
	w.put(w.lease, saved(provider, "task-1", "again"))
	w.expect(w.lease, claimed(provider, "task-10"), saved(provider, "task-1", "again"))
}

func providersAreSeparate(w *world) {
	names := []string{provider, "agent-10", "agent-1/x", "Agent-1"}
	leases := map[string]agentjob.Lease{provider: w.lease}
	for _, name := range names[1:] {
		leases[name] = w.acquire(name)
	}
	for _, name := range names {
		w.put(leases[name], saved(name, "task-1", "of "+name))
		w.put(leases[name], claimed(name, "task-2"))
	}
	w.remove(w.lease, "task-1")
	w.expect(w.lease, claimed(provider, "task-2"))
	for _, name := range names[1:] {
		w.expect(leases[name], saved(name, "task-1", "of "+name), claimed(name, "task-2"))
	}
}

func recordsShowEarlierWrites(w *world) {
	w.expect(w.lease)
	for i := range 20 { // more than one chance to meet a write that is late
		id := fmt.Sprint("task-", i)
		w.put(w.lease, claimed(provider, id))
		w.expect(w.lease, claimed(provider, id))
		w.put(w.lease, ended(provider, id))
		w.expect(w.lease, ended(provider, id))
		w.remove(w.lease, id)
		w.expect(w.lease)
	}
}

// A writer puts each number in first, then in second. So at any moment second
// is as large as first or one less.
func recordsAreOfOneMoment(w *world) {
	numbered := func(id string, n int) agentjob.Record {
		rec := claimed(provider, id)
		rec.Resumed = n
		return rec
	}
	w.put(w.lease, numbered("first", 0))
	w.put(w.lease, numbered("second", 0))
	stop, finished := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 1; ; n++ {
			for _, id := range []string{"first", "second"} {
				if err := w.lease.Put(w.ctx, numbered(id, n)); err != nil {
					finished <- err
					return
				}
			}
			select {
			case <-stop:
				finished <- nil
				return
			default:
			}
		}
	}()
	for range 100 {
		got := w.records(w.lease)
		first, second := got["first"].Resumed, got["second"].Resumed
		if len(got) != 2 || first < second || first > second+1 {
			w.Errorf("Records showed %d records with numbers %d and %d, which was never so", len(got), first, second)
			break
		}
	}
	close(stop)
	if err := <-finished; err != nil {
		w.Errorf("Put during Records = %v, want nil", err)
	}
}

func recordsAllowWritesAndBreak(w *world) {
	const n = 50
	for i := range n {
		w.put(w.lease, claimed(provider, fmt.Sprint("task-", i)))
	}
	seen := 0
	large := strings.Repeat("large ", 20_000) // makes a store grow under its reader
	for rec, err := range w.lease.Records(w.ctx) {
		if err != nil {
			w.Fatalf("Records yielded %v, want no error", err)
		}
		seen++
		w.put(w.lease, saved(provider, rec.TaskID, large))
		w.put(w.lease, ended(provider, rec.TaskID))
		w.remove(w.lease, rec.TaskID)
		w.put(w.lease, claimed(provider, "new "+rec.TaskID))
		if seen == n/2 {
			w.records(w.lease) // one iteration inside another
		}
	}
	if seen != n {
		w.Errorf("Records yielded %d records while they were changed, want the %d of the start", seen, n)
	}
	for range w.lease.Records(w.ctx) {
		break
	}
	if got := w.records(w.lease); len(got) != n {
		w.Errorf("after the iteration there are %d records, want %d", len(got), n)
	}
}

func unreadableRecordIsAnError(w *world) {
	for _, id := range []string{"task-1", "task-2", "task-3"} {
		w.put(w.lease, saved(provider, id, "a reply"))
	}
	w.close(w.lease)
	w.store = w.harness.Damage(w.TB, w.store)
	lease, err := w.store.Acquire(w.ctx, provider)
	if err == nil { // or it is found then
		defer lease.Close()
		for _, problem := range lease.Records(w.ctx) {
			if err != nil {
				w.Errorf("Records went on after it yielded the error %v", err)
			}
			err = problem
		}
	}
	if !errors.Is(err, agentjob.ErrStoreDamaged) {
		w.Errorf("the error for a record that can't be read is %v, want one that matches ErrStoreDamaged", err)
	}
}

func manyWriters(w *world) {
	const writers, tasks = 64, 8
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range tasks {
				id := fmt.Sprintf("%d/%d", i, j)
				for _, rec := range []agentjob.Record{claimed(provider, id), saved(provider, id, "reply "+id), ended(provider, id)}[:1+j%3] {
					if err := w.lease.Put(w.ctx, rec); err != nil {
						w.Errorf("a concurrent Put = %v, want nil", err)
					}
				}
				if j%4 == 3 {
					if err := w.lease.Delete(w.ctx, id); err != nil {
						w.Errorf("a concurrent Delete = %v, want nil", err)
					}
				}
			}
		})
	}
	all.Wait()
	var want []agentjob.Record
	for i := range writers {
		for j := range tasks {
			id := fmt.Sprintf("%d/%d", i, j)
			if j%4 != 3 {
				want = append(want, []agentjob.Record{claimed(provider, id), saved(provider, id, "reply "+id), ended(provider, id)}[j%3])
			}
		}
	}
	w.expect(w.lease, want...)
}
