package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// evidence gathers what there is when everything is over. No provider runs.
func (w *world) evidence(ctx context.Context) (all []evidence, err error) {
	lines := w.lines()
	for _, q := range w.asked {
		e := evidence{task: q.ID, allowed: q.allowed, counts: q.Counts(), before: q.Status()}
		for _, said := range q.chat.Transcript() {
			if said[0] == "assistant" {
				e.heard = append(e.heard, said[1])
			}
		}
		for _, l := range lines {
			switch {
			case l.subject != q.ID:
			case l.verb == "handle":
				e.runs++
			case l.verb == "resume":
				e.resumes++
			case l.verb == "reply":
				e.replies = append(e.replies, l.detail)
			case l.verb == "put" || l.verb == "known":
				e.saved = e.saved || l.detail == string(agentjob.StateSaved)
			}
		}
		all = append(all, e)
	}
	for _, r := range w.platform.Requests() {
		if r.Route != agentjobtest.RouteRespond {
			continue
		}
		var reply struct{ Text string }
		if err := json.Unmarshal(r.Body, &reply); err != nil {
			return nil, fmt.Errorf("a reply that is no JSON reached the platform: %w", err)
		}
		for i := range all {
			if all[i].task == path.Base(path.Dir(r.Path)) {
				all[i].sent = append(all[i].sent, reply.Text)
			}
		}
	}
	w.clock.jump(365 * 24 * time.Hour)
	err = withRecords(ctx, w.m.store, w.dir, w.agent.ID, func(_ agentjob.Lease, records map[string]agentjob.Record) error {
		for i := range all {
			if rec, ok := records[all[i].task]; ok {
				all[i].record = &rec
			}
			all[i].after = w.asked[i].Status()
		}
		if w.row.check != nil {
			return w.row.check(w, records)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("look at the records: %w", err)
	}
	return all, err
}
