package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestJudge(t *testing.T) {
	l := &looker{recording: &recording{
		world:   &world{agent: &agentjobtest.Agent{ID: "agent"}},
		replies: map[string][]byte{"a": []byte("answer")},
	}}
	marks := func(whats ...string) *expected {
		e := newExpected()
		for _, what := range whats {
			e.note(mark{what: what, name: "a"})
		}
		return e
	}
	rec := func(state agentjob.State, response string) found {
		r := agentjob.Record{TaskID: "a", State: state}
		if response != "" {
			r.Content.Response = []byte(response)
		}
		return found{records: map[string]agentjob.Record{"a": r}}
	}
	claimed, saved, ended := rec(agentjob.StateClaimed, ""), rec(agentjob.StateSaved, "answer"), rec(agentjob.StateEnded, "")
	whole := marks("CLAIMED", "RUN", "SAVED", "SEND")
	for _, tt := range []struct {
		name     string
		found    found
		expected *expected
		want     tally // and a text for each
	}{
		{"nothing was promised", found{}, marks(), tally{}},
		{"more than was promised", saved, marks("CLAIMED"), tally{}},
		{"all is there", saved, whole, tally{}},
		{"all is over", ended, whole, tally{}},
		{"unopenable", found{err: errors.New("no")}, whole, tally{unopenable: 1}},
		{"the claim is gone", found{}, marks("CLAIMED"), tally{lost: 1}},
		{"the claim of a task that runs is gone", found{}, marks("CLAIMED", "RUN"), tally{lost: 1, rerun: 1}},
		{"a task ran before it was claimed", found{}, marks("RUN"), tally{rerun: 1}},
		{"the reply is gone", claimed, marks("CLAIMED", "RUN", "SAVED"), tally{lost: 1}},
		{"the reply left and is gone", claimed, whole, tally{lost: 1, early: 1}},
		{"it left before it was saved", claimed, marks("CLAIMED", "RUN", "SEND"), tally{early: 1}},
		{"it is another one", rec(agentjob.StateSaved, "other"), marks("CLAIMED", "SAVED"), tally{lost: 2}},
		{"everything is gone", found{}, whole, tally{lost: 2, rerun: 1, early: 1}},
		{"the key is unbound", found{}, marks("BOUND"), tally{lost: 1}},
		{"the key is bound", found{providers: map[string]string{"a": "agent"}}, marks("BOUND"), tally{}},
		{"the key is another's", found{providers: map[string]string{"a": "other"}}, marks("BOUND"), tally{lost: 1}},
	} {
		got := l.judge(tt.found, tt.expected)
		assert.Len(t, got.texts, tt.want.bad(), tt.name)
		got.texts, tt.want.states = nil, 1
		assert.Equal(t, tt.want, got, tt.name)
	}
}
