package agentjobtest

import (
	"encoding/json"
	"net/http"
	"time"
)

// progressInterval is how often a provider may report.
const progressInterval = 3 * time.Second

func (s *Server) progress(c call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.owned(c)
	if t == nil {
		return refuse(http.StatusNotFound, "Task not found")
	}
	return answer{http.StatusOK, s.shape(map[string]any{
		"taskId": t.id, "status": t.status, "deadline": stamp(t.deadline),
		"limits": map[string]any{"maxVideos": 1, "maxBytes": 50_000_000, "maxSeconds": 120, "accessDays": 7},
	}, Bare)}
}

func (s *Server) reportProgress(c call) answer {
	var in struct {
		Seq     int64    `json:"seq"`
		Message string   `json:"message"`
		Percent *float64 `json:"percent"`
	}
	if err := json.Unmarshal(c.body, &in); err != nil || in.Seq < 1 {
		return refuse(http.StatusBadRequest, "seq takes a positive integer")
	}
	if in.Percent != nil && (*in.Percent < 0 || *in.Percent > 100) {
		return refuse(http.StatusBadRequest, "percent takes 0 to 100")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.owned(c)
	switch {
	case t == nil:
		return refuse(http.StatusNotFound, "Task not found")
	case t.status != StatusProcessing:
		return refuse(http.StatusConflict, "The request is "+string(t.status))
	case in.Seq <= t.progress.Seq: // never overwrites
		return answer{http.StatusOK, s.shape(map[string]any{"ok": true}, Bare)}
	case t.progress.Seq > 0 && s.now().Sub(t.reported) < progressInterval:
		return refuse(http.StatusTooManyRequests, "At most one progress update every 3 seconds")
	}
	t.progress, t.reported = Progress{in.Seq, in.Message, in.Percent}, s.now()
	t.bell.ring()
	return answer{http.StatusOK, s.shape(map[string]any{"ok": true}, Bare)}
}
