package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func ended(end agentjob.End) *agentjob.Record {
	return &agentjob.Record{State: agentjob.StateEnded, End: end}
}

// well is a task that went as it should.
func well() evidence {
	return evidence{
		allowed: are(delivered), counts: agentjobtest.Counts{Claims: 1, Deliveries: 1, Charges: 1},
		before: agentjobtest.StatusCompleted, after: agentjobtest.StatusCompleted,
		heard: []string{"hi"}, sent: []string{"hi"}, replies: []string{"hi"},
		runs: 1, saved: true, record: ended(agentjob.EndDelivered),
	}
}

// cutOff is one that was interrupted.
func cutOff() evidence {
	return evidence{
		allowed: are(interrupted), counts: agentjobtest.Counts{Claims: 1, Charges: 1},
		before: agentjobtest.StatusProcessing, after: agentjobtest.StatusFailed,
		replies: []string{"hi"}, runs: 1, record: ended(agentjob.EndInterrupted),
	}
}

func TestWhatIsRightIsNoProblem(t *testing.T) {
	for name, e := range map[string]evidence{
		"delivered":   well(),
		"interrupted": cutOff(),
		"delivered although the store had not said that it is saved": func() evidence {
			e := well()
			e.saved = false
			return e
		}(),
		"delivered in two tries": func() evidence {
			e := well()
			e.counts.Repeats, e.sent = 1, []string{"hi", "hi"}
			return e
		}(),
		"delivered by a resumption, with its own words": func() evidence {
			e := well()
			e.resumes, e.replies = 1, []string{"ho", "hi"}
			return e
		}(),
		"unrecorded": {
			allowed: are(unrecorded), counts: agentjobtest.Counts{Claims: 1, Charges: 1},
			before: agentjobtest.StatusProcessing, after: agentjobtest.StatusFailed,
		},
		"late": {
			allowed: are(late), counts: agentjobtest.Counts{Claims: 1, Charges: 1, Refused: 1},
			before: agentjobtest.StatusFailed, after: agentjobtest.StatusFailed,
			runs: 1, saved: true, replies: []string{"hi"}, sent: []string{"hi"}, record: ended(agentjob.EndRejected),
		},
		"cancelled": {
			allowed: are(late), counts: agentjobtest.Counts{Claims: 1, Charges: 1},
			before: agentjobtest.StatusCancelled, after: agentjobtest.StatusCancelled,
			runs: 1, record: ended(agentjob.EndRejected),
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(e)
			assert.Equal(t, verdict{fate: e.allowed[0]}, v)
		})
	}
}

func TestEveryBrokenPromiseIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		from   evidence
		change func(*evidence)
		counts verdict // the counts that must show
		says   string
	}{
		"lost": {cutOff(), func(e *evidence) { e.saved = true }, verdict{lost: 1}, "saved reply was not delivered"},
		"lost, whatever the record claims": {
			well(), func(e *evidence) { e.counts.Deliveries, e.before, e.heard = 0, agentjobtest.StatusProcessing, nil },
			verdict{lost: 1},
			"ended as nothing that may be",
		},
		"lost, given up": {
			well(), func(e *evidence) {
				e.counts.Deliveries, e.before, e.heard, e.record = 0, agentjobtest.StatusProcessing, nil, ended(agentjob.EndExpired)
			}, verdict{lost: 1}, "ended as nothing that may be",
		},
		"two messages":          {well(), func(e *evidence) { e.counts.Deliveries = 2 }, verdict{duplicated: 1}, ""},
		"two charges":           {well(), func(e *evidence) { e.counts.Charges = 2 }, verdict{duplicated: 1}, ""},
		"run again":             {well(), func(e *evidence) { e.runs = 2 }, verdict{regenerated: 1}, "ran 2 times"},
		"run again, in vain":    {cutOff(), func(e *evidence) { e.runs = 3 }, verdict{regenerated: 2}, "ran 3 times"},
		"other bytes again":     {well(), func(e *evidence) { e.sent = []string{"hi", "ho"} }, verdict{}, "different replies"},
		"words of nobody":       {well(), func(e *evidence) { e.heard = []string{"ho"} }, verdict{}, "not the one that was made"},
		"words out of nothing":  {well(), func(e *evidence) { e.replies = nil }, verdict{}, "not the one that was made"},
		"another fate":          {cutOff(), func(e *evidence) { e.allowed = are(delivered, late) }, verdict{}, "should have been delivered or late"},
		"interrupted, and sent": {cutOff(), func(e *evidence) { e.sent = []string{"hi"} }, verdict{}, "and a reply was sent"},
		"delivered, called interrupted": {
			well(), func(e *evidence) { e.record = ended(agentjob.EndInterrupted) }, verdict{}, "the record says: ended interrupted",
		},
		"delivered, forgotten": {well(), func(e *evidence) { e.record = nil }, verdict{}, "the record says: no record"},
		"run without a record": {cutOff(), func(e *evidence) { e.record, e.allowed = nil, are(unrecorded) }, verdict{}, "ran without a record"},
		"unrecorded and open for ever": {
			evidence{allowed: are(unrecorded), after: agentjobtest.StatusProcessing}, func(*evidence) {}, verdict{}, "should expire",
		},
		"left open": {
			cutOff(), func(e *evidence) { e.record = &agentjob.Record{State: agentjob.StateClaimed} }, verdict{}, "ended as nothing that may be: claimed",
		},
		"called late in time": {cutOff(), func(e *evidence) { e.record = ended(agentjob.EndExpired) }, verdict{}, "ended as nothing that may be"},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.from
			c.change(&e)
			v := judge(e)
			assert.Equal(t, [3]int{c.counts.lost, c.counts.duplicated, c.counts.regenerated}, [3]int{v.lost, v.duplicated, v.regenerated})
			assert.Contains(t, strings.Join(v.problems, "\n"), c.says)

			// And so it gets into the row and the last line.
			var table tally
			table.add(v)
			require.False(t, table.ok())
			require.Contains(t, table.String(), "NOT OK")
			var out strings.Builder
			require.False(t, conclude([]*tally{{runs: 1}, &table}, &out))
			require.Contains(t, out.String(), "1 of 2 rows are not ok\n")
		})
	}
}

func TestLastLine(t *testing.T) {
	for name, c := range map[string]struct {
		unforgiving, window bool
		found               verdict
		kept                bool
		last                string
	}{
		"all is well":          {found: verdict{fate: delivered}, kept: true, last: "lost=0 duplicated=0 regenerated=0"},
		"one of each":          {found: verdict{delivered, 1, 1, 1, nil}, last: "lost=1 duplicated=1 regenerated=1"},
		"no count, a problem":  {found: verdict{problems: []string{"the moment did not come"}}, last: "lost=0 duplicated=0 regenerated=0"},
		"in the window":        {unforgiving: true, window: true, found: verdict{duplicated: 2}, kept: true, last: "lost=0 duplicated=0 regenerated=0"},
		"outside the window":   {unforgiving: true, found: verdict{duplicated: 2}, last: "lost=0 duplicated=2 regenerated=0"},
		"on a forgiving one":   {window: true, found: verdict{duplicated: 2}, last: "lost=0 duplicated=2 regenerated=0"},
		"lost in the window":   {unforgiving: true, window: true, found: verdict{lost: 1, problems: []string{"x"}}, last: "lost=1 duplicated=0 regenerated=0"},
		"run in the window":    {unforgiving: true, window: true, found: verdict{regenerated: 1, problems: []string{"x"}}, last: "lost=0 duplicated=0 regenerated=1"},
		"a window without any": {unforgiving: true, window: true, found: verdict{fate: delivered}, kept: true, last: "lost=0 duplicated=0 regenerated=0"},
	} {
		t.Run(name, func(t *testing.T) {
			table := tally{row: row{unforgiving: c.unforgiving, window: c.window}}
			table.add(c.found)
			var out strings.Builder
			assert.Equal(t, c.kept, conclude([]*tally{&table}, &out))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			assert.Equal(t, c.last, lines[len(lines)-1])
			if c.unforgiving && c.window {
				assert.Contains(t, out.String(), "only a platform that knows a repeat closes the window")
				if c.found.duplicated > 0 {
					assert.Contains(t, out.String(), "2 second messages in 1 runs")
					assert.Contains(t, table.String(), " 2* ")
				}
			}
		})
	}
}
