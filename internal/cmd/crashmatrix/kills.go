package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A kill is a point at which the provider kills itself, and what must become of its task.
type kill struct {
	point  string
	allows []fate
	next   string // see moment.Next
	window bool   // see row.window
}

func are(f ...fate) []fate { return f }

// kills are the points in the order in which a life passes them.
var kills = []kill{
	// Nothing was handed out yet: the next provider answers.
	{point: "before open store", allows: are(delivered)},
	{point: "during open store", allows: are(delivered)},
	{point: "after open store", allows: are(delivered)},
	{point: "before GET me", allows: are(delivered)},
	{point: "after GET me", allows: are(delivered)},
	{point: "before bind provider", allows: are(delivered)},
	{point: "during bind provider", allows: are(delivered)},
	{point: "after bind provider", allows: are(delivered)},
	{point: "before acquire lease", allows: are(delivered)},
	{point: "after acquire lease", allows: are(delivered)},
	{point: "before GET tasks", allows: are(delivered)},
	// Handed out and not recorded: the platform's to expire.
	{point: "during GET tasks", allows: are(delivered, unrecorded)},
	{point: "after GET tasks", allows: are(unrecorded)},
	{point: "before put claimed", allows: are(unrecorded)},
	{point: "during put claimed", allows: are(unrecorded, interrupted)},
	// Claimed and not saved: reported, never run again.
	{point: "after put claimed", allows: are(interrupted)},
	{point: "before GET progress", next: "after put claimed", allows: are(interrupted)},
	{point: "after GET progress", next: "after put claimed", allows: are(interrupted)},
	{point: "handler starts", allows: are(interrupted)},
	{point: "before POST progress", allows: are(interrupted)},
	{point: "after POST progress", allows: are(interrupted)},
	{point: "handler works", allows: are(interrupted)},
	{point: "handler is done", allows: are(interrupted)},
	{point: "before put saved", allows: are(interrupted)},
	{point: "during put saved", allows: are(interrupted, delivered)},
	// Saved: delivered, with the same bytes.
	{point: "after put saved", allows: are(delivered)},
	{point: "before POST response", allows: are(delivered)},
	{point: "during POST response", allows: are(delivered), window: true},
	{point: "after POST response", allows: are(delivered), window: true},
	{point: "before put ended", allows: are(delivered), window: true},
	{point: "during put ended", allows: are(delivered), window: true},
	{point: "after put ended", allows: are(delivered), window: true}, // which need not be on disk when it returns
}

// beside are the points of the heartbeat, which goes out while a task is claimed and answered.
var beside = []kill{
	{point: "before POST heartbeat", allows: are(delivered, interrupted, unrecorded), window: true},
	{point: "after POST heartbeat", allows: are(delivered, interrupted, unrecorded), window: true},
}

// ends are the points of a provider that was asked to drain when its task was delivered.
var ends = []kill{
	{point: "before close lease", allows: are(delivered), window: true},
	{point: "during close lease", allows: are(delivered), window: true},
	{point: "after close lease", allows: are(delivered)},
	{point: "before close store", allows: are(delivered)},
	{point: "during close store", allows: are(delivered)},
	{point: "after close store", allows: are(delivered)},
}

// relapses are kills of a provider, and then of the one that takes up what it left.
var relapses = []struct {
	points []string
	kill
}{
	{[]string{"after put claimed", "before put ended"}, kill{allows: are(interrupted)}},
	{[]string{"after put claimed", "during put ended"}, kill{allows: are(interrupted)}},
	{[]string{"after put claimed", "after put ended"}, kill{allows: are(interrupted)}},
	{[]string{"after put saved", "before POST response"}, kill{allows: are(delivered)}},
	{[]string{"after put saved", "during POST response"}, kill{allows: are(delivered), window: true}},
	{[]string{"after put saved", "after POST response"}, kill{allows: are(delivered), window: true}},
	{[]string{"after POST response", "after POST response", "after POST response"}, kill{allows: are(delivered), window: true}},
}

// resumptions are the same with Config.Resume, which is told each time.
var resumptions = [][]string{
	{"handler works"},
	{"handler works", "before put resumed"},
	{"handler works", "after put resumed"},
	{"handler works", "resume works"},
	{"before put saved", "before put saved"},
}

// killRows are the rows of all these.
func killRows(group string, unforgiving bool) (rows []row) {
	add := func(name string, k kill, play func(context.Context, *world) error) {
		r := row{name: group + ": " + name, unforgiving: unforgiving, window: k.window, play: play}
		rows = append(rows, r)
	}
	for _, k := range slices.Concat(kills, beside) {
		add(k.point, k, crashes(k.allows, moment{Name: k.point, Next: k.next}))
	}
	for _, k := range relapses {
		add(inTurn(k.points), k.kill, crashes(k.allows, moments(k.points)...))
	}
	for _, k := range ends {
		add("drained, "+k.point, k, drainedAndKilled(k))
	}
	add("asked to drain while the handler works", kill{}, killedInDrain)
	add("between two POST response", kill{}, killedBetweenTries)
	add("after the next task's put claimed", kill{}, killedInNext)
	return rows
}

// inTurn names points one after the other.
func inTurn(points []string) string {
	if len(slices.Compact(slices.Clone(points))) == 1 && len(points) > 1 {
		return fmt.Sprintf("%s, %d times", points[0], len(points))
	}
	return strings.Join(points, ", then ")
}

func moments(points []string) (all []moment) {
	for _, p := range points {
		all = append(all, moment{Name: p})
	}
	return all
}

// crashes is a task over which one provider after the other kills itself.
func crashes(allows []fate, moments ...moment) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if _, err := w.ask(allows...); err != nil {
			return err
		}
		for _, at := range moments {
			if err := w.crash(ctx, at); err != nil {
				return err
			}
		}
		return nil
	}
}

func drainedAndKilled(k kill) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		q, err := w.ask(k.allows...)
		if err != nil {
			return err
		}
		c, err := w.start(ctx, moment{Name: k.point, Do: die})
		if err != nil {
			return err
		}
		if err := c.await(ctx, "event", q.ID, string(agentjob.EndDelivered)); err != nil {
			return err
		}
		w.running = nil
		c.drain()
		return c.died(ctx, k.point)
	}
}

func killedInDrain(ctx context.Context, w *world) error {
	if _, err := w.ask(interrupted); err != nil {
		return err
	}
	c, err := w.holds(ctx, "handler works")
	if err != nil {
		return err
	}
	c.drain()
	if err := c.await(ctx, "event", "", string(agentjob.EventDraining)); err != nil {
		return err
	}
	c.kill()
	w.running = nil
	return nil
}

// holds starts a provider and waits until it is held at a point.
func (w *world) holds(ctx context.Context, point string) (*child, error) {
	c, err := w.start(ctx, moment{Name: point, Do: hold})
	if err == nil {
		err = c.await(ctx, "at", point, "")
	}
	return c, err
}

func killedBetweenTries(ctx context.Context, w *world) error {
	w.fail(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 503, Times: 1})
	if _, err := w.ask(delivered); err != nil {
		return err
	}
	return w.crash(ctx, moment{Name: "before POST response", Nth: 2})
}

// killedInNext kills over a second task. The first one's end is on disk by then, since no write overtakes another.
func killedInNext(ctx context.Context, w *world) error {
	first, err := w.ask(delivered)
	if err != nil {
		return err
	}
	at := moment{Name: "after put claimed", Nth: 2, Do: die}
	c, err := w.start(ctx, at)
	if err != nil {
		return err
	}
	if err := c.await(ctx, "put", first.ID, string(agentjob.StateEnded)); err != nil {
		return err
	}
	if _, err := w.ask(interrupted); err != nil {
		return err
	}
	w.running = nil
	return c.died(ctx, at.Name)
}

// resumeRows are kills of a provider that resumes.
func resumeRows() (rows []row) {
	for _, points := range resumptions {
		rows = append(rows, row{
			name: "resume: " + inTurn(points), share: 5, resumes: true,
			play: crashes(are(delivered), moments(points)...), check: countsResumptions,
		})
	}
	return rows
}

// countsResumptions wants as many resumptions on record as Config.Resume may have seen: none is forgotten.
func countsResumptions(w *world, records map[string]agentjob.Record) error {
	id, ran := w.asked[0].ID, 0
	for _, l := range w.lines() {
		if l.verb == "resume" && l.subject == id {
			ran++
		}
	}
	if n := records[id].Resumed; ran == 0 || n < ran {
		return fmt.Errorf("the record tells %d resumptions, and there were %d", n, ran)
	}
	return nil
}

// deleteRows are kills while a tombstone of days ago is removed, at the start.
func deleteRows() (rows []row) {
	const old = "a task of three days ago"
	for _, point := range []string{"before delete", "during delete", "after delete"} {
		rows = append(rows, row{
			name: "kill: " + point, share: 5,
			play: func(ctx context.Context, w *world) error {
				err := withRecords(ctx, w.m.store, w.dir, w.agent.ID, func(l agentjob.Lease, _ map[string]agentjob.Record) error {
					then := time.Now().Add(-72 * time.Hour)
					return l.Put(ctx, agentjob.Record{
						Provider: w.agent.ID, TaskID: old, State: agentjob.StateEnded, End: agentjob.EndDelivered,
						ClaimedAt: then, SavedAt: then, EndedAt: then, Deadline: then,
					})
				})
				if err != nil {
					return err
				}
				return crashes(are(delivered), moment{Name: point})(ctx, w)
			},
			check: func(_ *world, records map[string]agentjob.Record) error {
				if _, ok := records[old]; ok {
					return errors.New("the old record is still there")
				}
				return nil
			},
		})
	}
	return rows
}
