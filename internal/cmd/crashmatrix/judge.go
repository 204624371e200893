package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A fate is what became of a task.
type fate string

const (
	delivered   fate = "delivered"   // the customer has the reply
	interrupted fate = "interrupted" // the provider reports that a crash came before the reply was saved
	unrecorded  fate = "unrecorded"  // the poll's answer never became a record: not run, it expires on the platform
	late        fate = "late"        // the platform had let it expire, and the provider reports that
)

// Evidence is all that is known of one task when everything is over.
type evidence struct {
	task    string
	allowed []fate

	// What the platform and the customer saw.
	counts agentjobtest.Counts
	before agentjobtest.Status // when the last provider had ended
	after  agentjobtest.Status // when then the deadline had passed
	heard  []string            // replies in the conversation
	sent   []string            // texts of all replies that reached the platform, also refused ones

	// What the providers told at every step.
	runs    int      // of the handler
	resumes int      // of Config.Resume, which may run again
	replies []string // that they made
	saved   bool     // the store had confirmed that the reply is saved

	record *agentjob.Record // that is left in the store; nil: none
}

// A verdict counts the promises that were broken over a task, or in a run. Problems are all that
// is wrong, these included or not.
type verdict struct {
	fate        fate // "" if it is none of them
	lost        int
	duplicated  int
	regenerated int
	problems    []string
}

func judge(e evidence) verdict {
	refused := e.counts.Refused > 0 || e.before == agentjobtest.StatusFailed || e.before == agentjobtest.StatusCancelled
	v := verdict{
		fate:        e.fate(refused),
		duplicated:  max(e.counts.Deliveries, e.counts.Charges, 1) - 1,
		regenerated: max(e.runs, 1) - 1,
	}
	if e.saved && e.counts.Deliveries == 0 && !refused {
		v.lost = 1
	}
	for _, check := range []struct {
		wrong bool
		text  string
	}{
		{v.lost > 0, "a saved reply was not delivered, though neither refused nor expired"},
		{v.regenerated > 0, fmt.Sprintf("the handler ran %d times", e.runs)},
		{v.fate == "", "it ended as nothing that may be: " + e.recorded()},
		{v.fate != "" && !slices.Contains(e.allowed, v.fate), fmt.Sprintf("it was %s, and should have been %s", v.fate, oneOf(e.allowed))},
		{v.fate == delivered && (e.record == nil || e.record.End != agentjob.EndDelivered), "the customer has the reply, and the record says: " + e.recorded()},
		{v.fate == unrecorded && e.runs+e.resumes > 0, "it ran without a record"},
		{v.fate == unrecorded && e.after != agentjobtest.StatusFailed, fmt.Sprintf("it should expire on the platform, and is %s", e.after)},
		{v.fate == interrupted && len(e.sent) > 0, "it is reported as interrupted, and a reply was sent"},
		{differ(e.sent), "different replies were sent"},
		{!e.made(e.sent) || !e.made(e.heard), "a reply was sent that is not the one that was made"},
	} {
		if check.wrong {
			v.problems = append(v.problems, check.text)
		}
	}
	return v
}

func (e evidence) fate(refused bool) fate {
	switch {
	case e.counts.Deliveries > 0:
		return delivered
	case e.record == nil:
		return unrecorded
	case e.record.End == agentjob.EndInterrupted:
		return interrupted
	case refused && (e.record.End == agentjob.EndRejected || e.record.End == agentjob.EndExpired):
		return late
	}
	return ""
}

func (e evidence) recorded() string {
	if e.record == nil {
		return "no record"
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s, status %d, %s", e.record.State, e.record.End, e.record.Status, e.record.Reason)), " ")
}

// made reports whether these texts are the reply: the first one made, unless it was resumed.
func (e evidence) made(texts []string) bool {
	if len(texts) == 0 {
		return true
	}
	if len(e.replies) == 0 {
		return false
	}
	reply := e.replies[0]
	if e.resumes > 0 {
		reply = e.replies[len(e.replies)-1]
	}
	return !slices.ContainsFunc(texts, func(text string) bool { return text != reply })
}

func differ(texts []string) bool {
	return len(texts) > 1 && slices.ContainsFunc(texts, func(text string) bool { return text != texts[0] })
}

func oneOf(fates []fate) string {
	names := make([]string, len(fates))
	for i, f := range fates {
		names[i] = string(f)
	}
	return strings.Join(names, " or ")
}
