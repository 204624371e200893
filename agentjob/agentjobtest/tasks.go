package agentjobtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is where a message is, in the words of the progress route.
type Status string

// The statuses. The platform's word for an open task is not known.
const (
	StatusQueued     Status = "queued" // not claimed yet
	StatusProcessing Status = "processing"
	StatusCompleted  Status = "completed"
	StatusCancelled  Status = "cancelled"
	StatusFailed     Status = "failed" // its deadline passed
)

// A task is one message that waits for a reply. The server's lock guards it.
type task struct {
	id          string
	agent       *Agent
	chat        *Chat
	upTo        int // messages of the chat that belong to it
	first       bool
	free        bool
	attachments []Attachment
	raw         json.RawMessage // replaces the task object

	status   Status
	again    bool // to be handed out once more
	deadline time.Time
	text     string
	progress Progress
	reported time.Time // when the last progress report was taken
	counts   Counts
	bell     bell // rings when any of these changes
}

// Progress is what a provider reported last. Seq is 0 before the first report.
type Progress struct {
	Seq     int64
	Message string
	Percent *float64 // nil: not told
}

// expire ends a claimed task whose deadline has passed. s.mu is held.
func (s *Server) expire(t *task) {
	if t.status == StatusProcessing && !s.now().Before(t.deadline) {
		t.become(StatusFailed)
	}
}

// become ends or starts the work on a task, which may make room for another. The
// server's lock is held.
func (t *task) become(status Status) {
	t.status = status
	if !t.open() {
		t.agent.srv.over(t)
	}
	t.bell.ring()
	t.agent.bell.ring()
}

func (t *task) open() bool { return t.status == StatusQueued || t.status == StatusProcessing }

// over remembers a task that has ended, and forgets the older half of such tasks when there are
// too many. The server's lock is held.
func (s *Server) over(t *task) {
	s.ended = append(s.ended, t)
	if len(s.ended) <= s.settings.MaxTasks {
		return
	}
	oldest := s.ended[:(len(s.ended)+1)/2]
	for _, t := range oldest {
		delete(s.tasks, t.id)
	}
	s.ended = slices.Clone(s.ended[len(oldest):])
}

// tidy expires what is late and lets go of what is over. The server's lock is held.
func (a *Agent) tidy() {
	a.live = slices.DeleteFunc(a.live, func(t *task) bool {
		a.srv.expire(t)
		return !t.again && !t.open()
	})
}

const (
	defaultWait = 30 * time.Second
	maxWait     = 60
)

// poll holds the request until there is a task to claim, the wait is over, or the
// client has gone.
func (s *Server) poll(c call) answer {
	wait := defaultWait
	if v := c.URL.Query().Get("wait"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxWait {
			return refuse(http.StatusBadRequest, "wait takes 1 to 60 seconds")
		}
		wait = time.Duration(n) * time.Second
	}
	types := strings.FieldsFunc(c.Header.Get("X-Agentjob-Attachment-Types"), func(r rune) bool { return r == ',' || r == ' ' })
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		s.mu.Lock()
		var found any
		if c.Context().Err() == nil && s.keys[c.agent.Key] == c.agent {
			found = s.claim(c.agent, types)
		}
		changed, room := c.agent.bell.wait(), c.agent.room()
		s.mu.Unlock()
		if found != nil {
			return answer{http.StatusOK, found}
		}
		select {
		case <-changed:
		case <-room:
		case <-c.Context().Done():
			return s.noTask()
		case <-s.closed:
			return s.noTask()
		case <-over.C:
			return s.noTask()
		}
	}
}

// room returns a channel that tells when the next deadline of a claimed task may make room for
// another task, which nothing else tells a poll that is held. The server's lock is held.
func (a *Agent) room() <-chan time.Time {
	var next time.Time
	for _, t := range a.live {
		if t.status == StatusProcessing && (next.IsZero() || t.deadline.Before(next)) {
			next = t.deadline
		}
	}
	if next.IsZero() {
		return nil
	}
	// A clock that stands still must not make this a hot loop.
	return time.After(max(next.Sub(a.srv.now()), 10*time.Millisecond))
}

// claim hands out a message that this poll may have: one to be handed out again, else the
// oldest queued one. s.mu is held.
func (s *Server) claim(a *Agent, types []string) any {
	a.tidy()
	if i := slices.IndexFunc(a.live, func(t *task) bool { return t.again && t.status != StatusQueued }); i >= 0 {
		t := a.live[i]
		t.again = false
		return s.claimed(t)
	}
	open := 0
	for _, t := range a.live {
		if t.status == StatusProcessing {
			open++
		}
	}
	if open >= s.settings.MaxConcurrentChats {
		return nil
	}
	for _, t := range a.live {
		if t.status == StatusQueued && reads(types, t.attachments) {
			t.deadline = s.now().Add(s.settings.Deadline)
			t.become(StatusProcessing)
			return s.claimed(t)
		}
	}
	return nil
}

// reads tells whether an agent that reads files of these types can do with these.
func reads(types []string, files []Attachment) bool {
	return !slices.ContainsFunc(files, func(f Attachment) bool { return !slices.Contains(types, f.ContentType) })
}

// claimed counts a claim and returns the body that hands t out. s.mu is held.
func (s *Server) claimed(t *task) any {
	t.counts.Claims++
	t.bell.ring()
	var body any = s.taskObject(t)
	if t.raw != nil {
		body = t.raw
	}
	return s.shapeTask(body)
}

func (s *Server) taskObject(t *task) map[string]any {
	var amount any = price
	if s.settings.AmountAsNumber {
		amount = priceAsNumber
	}
	o := map[string]any{
		"id": t.id, "chat_id": t.chat.id, "is_first_chat": t.first, "amount_usdc": amount,
		"messages": t.chat.messages[:t.upTo:t.upTo],
	}
	if s.settings.DeadlineInTask {
		o["deadline"] = stamp(t.deadline)
	}
	return o
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// HandOutAgain makes the next poll of the task's agent get the task once more,
// whatever its state, as a platform that has lost a claim would. It reports whether there is
// such a task.
func (s *Server) HandOutAgain(taskID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tasks[taskID]
	if t == nil {
		return false
	}
	t.again = true
	if !slices.Contains(t.agent.live, t) {
		t.agent.live = append(t.agent.live, t)
	}
	t.agent.bell.ring()
	return true
}

// owned returns the task of a task route, or nil if it is unknown, not the agent's, or
// never claimed. s.mu is held.
func (s *Server) owned(c call) *task {
	t := s.tasks[c.task]
	if t == nil || t.agent != c.agent || t.counts.Claims == 0 {
		return nil
	}
	s.expire(t)
	return t
}
