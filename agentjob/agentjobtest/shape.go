package agentjobtest

import (
	"net/http"
	"strings"
)

// Shape is how a success body is wrapped.
type Shape int

// The shapes in which public clients have seen, or expect, answers.
const (
	Native   Shape = iota // as each route is believed to answer: {task}, {data}, {ok,data}
	Bare                  // the payload alone; a task stands at the top level
	Data                  // {"data": payload}
	OKData                // {"ok":true,"data": payload}; a task is {"task": task} in it
	DataTask              // {"data":{"task": task}}, elsewhere like Data
)

// EmptyPoll is how a poll without a task is answered, whatever the shape.
type EmptyPoll int

// The answers of an empty poll.
const (
	NullTask    EmptyPoll = iota // {"task":null}
	EmptyObject                  // {}
	NoContent                    // 204
	EmptyBody                    // 200 and nothing
)

// shape wraps a payload as the settings say; native is how the route does it. s.mu is held.
func (s *Server) shape(payload map[string]any, native Shape) any {
	if s.settings.CamelCase {
		payload = camelCase(payload)
	}
	shape := s.settings.Shape
	if shape == Native {
		shape = native
	}
	switch shape {
	case Data, DataTask:
		return map[string]any{"data": payload}
	case OKData:
		return map[string]any{"ok": true, "data": payload}
	}
	return payload
}

// shapeTask wraps a task object, or what stands for one. s.mu is held.
func (s *Server) shapeTask(task any) any {
	if m, ok := task.(map[string]any); ok && s.settings.CamelCase {
		task = camelCase(m)
	}
	switch s.settings.Shape {
	case Bare:
		return task
	case Data:
		return map[string]any{"data": task}
	case DataTask:
		return map[string]any{"data": map[string]any{"task": task}}
	case OKData:
		return map[string]any{"ok": true, "data": map[string]any{"task": task}}
	}
	return map[string]any{"task": task}
}

func (s *Server) noTask() answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.settings.Empty {
	case NoContent:
		return answer{status: http.StatusNoContent}
	case EmptyBody:
		return answer{status: http.StatusOK}
	case EmptyObject:
		return answer{http.StatusOK, map[string]any{}}
	}
	return answer{http.StatusOK, map[string]any{"task": nil}}
}

// camelCase returns an object with its names, also those of objects in it, in camelCase.
func camelCase(snake map[string]any) map[string]any {
	out := make(map[string]any, len(snake))
	for name, value := range snake {
		if inner, ok := value.(map[string]any); ok {
			value = camelCase(inner)
		}
		words := strings.Split(name, "_")
		for i, w := range words[1:] {
			if w != "" {
				words[i+1] = strings.ToUpper(w[:1]) + w[1:]
			}
		}
		out[strings.Join(words, "")] = value
	}
	return out
}
