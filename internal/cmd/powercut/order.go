package main

import (
	"fmt"
	"regexp"

	"github.com/agentjob/agentjob-go/internal/cmd/internal/systrace"
)

// A need is what must be on disk before a step of a task's life.
type need struct {
	what  string // the step
	state string // the record's, at least
}

var needs = map[string]need{
	"RUN":  {"its handler started", "claimed"},
	"SEND": {"its reply left", "saved"},
}

var reached = map[string]string{"claimed": "claimed|saved|ended", "saved": "saved|ended"}

// early says what is wrong with the order of writes, syncs and the step that a mark tells of; "" if nothing
// is. It looks for the record's envelope, which every store writes readably, in what is
// surely on disk; that the store finds it there is for the judge of states.
func early(m mark, disk *systrace.Disk) string {
	n, ok := needs[m.what]
	if !ok {
		return ""
	}
	record := regexp.MustCompile(`"taskId":\s*"` + regexp.QuoteMeta(m.name) + `"[^{}]{0,600}?"state":\s*"(` + reached[n.state] + `)"`)
	for _, entry := range disk.Image(nil) {
		if record.Match(entry.Data) {
			return ""
		}
	}
	text := fmt.Sprintf("task %s: %s (line %d of the trace) before its %s record was on disk: ", m.name, n.what, m.line, n.state)
	var names, written *systrace.Call
	for _, o := range disk.Pending() {
		data, _ := o.Data()
		switch {
		case o.IsName():
			names = o.Call
		case record.Match(data):
			written = o.Call
		}
	}
	switch {
	case written != nil:
		return text + fmt.Sprintf("no sync has made durable what %s wrote", written)
	case names != nil:
		return text + fmt.Sprintf("if it was written, then into a file whose name no sync of its folder has made durable since %s", names)
	}
	return text + "nothing has written it"
}
