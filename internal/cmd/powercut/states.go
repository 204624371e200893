package main

import (
	"math/rand/v2"
	"slices"

	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

const sector = 512

// A variant is how the disk took what was not synced.
type variant struct {
	name  string
	fates func(*rand.Rand, []*systrace.Op) []systrace.Fate // nil: there is no such state here
}

// variants, in the order of the report.
var variants = []variant{
	{"synced", func(_ *rand.Rand, pending []*systrace.Op) []systrace.Fate { return make([]systrace.Fate, len(pending)) }},
	{"all", func(_ *rand.Rand, pending []*systrace.Op) []systrace.Fate {
		return some(pending, func() bool { return true })
	}},
	{"subset", func(r *rand.Rand, pending []*systrace.Op) []systrace.Fate {
		return some(pending, func() bool { return r.IntN(2) == 0 })
	}},
	{"torn", torn(false)},
	{"long", torn(true)},
}

func some(pending []*systrace.Op, kept func() bool) []systrace.Fate {
	fates := make([]systrace.Fate, len(pending))
	for i := range fates {
		fates[i].Kept = kept()
	}
	return nonempty(fates)
}

// nonempty: where nothing is pending there is one state, the synced one.
func nonempty(fates []systrace.Fate) []systrace.Fate {
	if len(fates) == 0 {
		return nil
	}
	return fates
}

// torn tears the last write of more than a sector between two sectors, and of those before it all are there or some. A long
// one is the last write of all, none of which may be there, while its file has the length for it.
func torn(long bool) func(*rand.Rand, []*systrace.Op) []systrace.Fate {
	return func(r *rand.Rand, pending []*systrace.Op) []systrace.Fate {
		all := r.IntN(2) == 0
		fates := some(pending, func() bool { return all || r.IntN(2) == 0 })
		for i, op := range slices.Backward(pending) {
			data, offset := op.Data()
			if at := boundaries(len(data), offset, long); len(at) > 0 {
				fates[i] = systrace.Fate{Kept: true, Torn: true, Keep: at[r.IntN(len(at))], Long: long}
				return fates
			}
		}
		return nil
	}
}

// boundaries are where sectors begin in a write, its own beginning only if asked for.
func boundaries(size int, offset int64, first bool) (at []int) {
	if first && size > 0 {
		at = append(at, 0)
	}
	for n := sector - int(offset%sector); n < size; n += sector {
		at = append(at, n)
	}
	return at
}

// A state is a power cut after a step of the trace, and a variant.
type state struct{ step, variant int }

// random is the same for a state whatever others are looked at.
func (s state) random(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(s.step*len(variants)+s.variant)))
}

// A moment is one between two steps: power may be cut then.
type moment struct {
	step     int
	disk     *systrace.Disk
	expected *expected
	mark     *mark // that the step made
}

// moments visits those at which a power cut finds something else than the one before: a change on the
// disk or under way to it, or a mark.
func (r *recording) moments(visit func(moment) error) error {
	replay := systrace.NewReplay(r.folder)
	e := newExpected()
	marks := r.marks
	for i, step := range r.steps {
		before := replay.Disk().Changes()
		if err := replay.Apply(step); err != nil {
			return err
		}
		m := moment{step: i, disk: replay.Disk(), expected: e}
		if len(marks) > 0 && marks[0].step == i {
			m.mark, marks = &marks[0], marks[1:]
			e.note(*m.mark)
		}
		if m.mark == nil && replay.Disk().Changes() == before {
			continue
		}
		if err := visit(m); err != nil {
			return err
		}
	}
	return nil
}

// plan chooses about n states by seed, all if n is 0: what was synced at each mark, always, and a sample of all others.
func (r *recording) plan(n int, seed uint64) (map[state]bool, error) {
	chosen := map[state]bool{}
	var rest []state
	err := r.moments(func(m moment) error {
		for v, variant := range variants {
			s := state{m.step, v}
			switch {
			case variant.fates(s.random(seed), m.disk.Pending()) == nil:
			case m.mark != nil && v == 0:
				chosen[s] = true
			default:
				rest = append(rest, s)
			}
		}
		return nil
	})
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	if n > 0 {
		rest = rest[:max(0, min(n-len(chosen), len(rest)))]
	}
	for _, s := range rest {
		chosen[s] = true
	}
	return chosen, err
}
