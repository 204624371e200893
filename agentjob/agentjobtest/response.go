package agentjobtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf16"
)

const maxText = 100_000

func (s *Server) respond(c call) answer {
	var in struct {
		Text          string   `json:"text"`
		AttachmentIDs []string `json:"attachmentIds"`
	}
	if err := json.Unmarshal(c.body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Invalid JSON")
	}
	if len(in.AttachmentIDs) > 0 {
		return refuse(http.StatusBadRequest, "Unknown attachment")
	}
	if strings.TrimSpace(in.Text) == "" {
		return refuse(http.StatusBadRequest, "text is required")
	}
	if len(utf16.Encode([]rune(in.Text))) > maxText {
		return refuse(http.StatusBadRequest, "text takes 1 to 100000 characters")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.owned(c)
	switch {
	case t == nil:
		return refuse(http.StatusNotFound, "Task not found")
	case t.status == StatusCompleted && t.text == in.Text && !s.settings.NoResponseIdempotency:
		t.counts.Repeats++
		return s.accepted(t)
	case t.status == StatusCompleted && s.settings.NoResponseIdempotency:
		t.counts.Charges++
		t.free = false // a second charge is a payment
		t.deliver(in.Text)
		return s.accepted(t)
	case t.status != StatusProcessing:
		t.counts.Refused++
		return refuse(http.StatusConflict, "The request is "+string(t.status))
	}
	t.text = in.Text
	t.become(StatusCompleted)
	t.deliver(in.Text)
	return s.accepted(t)
}

// deliver puts a reply into the conversation. The server's lock is held.
func (t *task) deliver(text string) {
	t.counts.Deliveries++
	t.agent.replies++
	if !t.free {
		t.agent.receipts++
	}
	t.chat.messages = append(t.chat.messages, message{Role: "assistant", Content: text})
}

func (s *Server) accepted(t *task) answer {
	return answer{http.StatusOK, s.shape(map[string]any{"taskId": t.id, "status": t.status}, OKData)}
}
