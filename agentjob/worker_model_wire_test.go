package agentjob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A wire is the network as one life sees it.
type wire struct {
	life *life
	next http.RoundTripper
}

var errDead = errors.New("the process is dead")

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	l := w.life
	route, taskID := routeOf(req)
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close() // of bytes in memory
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err := req.Context().Err(); err != nil {
		return nil, err // given up before it began
	}
	l.x.mu.Lock()
	e := l.x.byID[taskID]
	dies := l.dead || l.springs("crash at request", "before", "", route)
	if !dies {
		l.checkRequest(route, e, body)
	}
	l.x.mu.Unlock()
	if dies {
		return nil, errDead
	}
	ctx, cancel := context.WithCancel(req.Context())
	unwatch := context.AfterFunc(l.alive, cancel)
	a := &answerBody{life: l, route: route, errand: e, end: func() { unwatch(); cancel() }}
	resp, err := w.next.RoundTrip(req.WithContext(ctx))
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if err != nil || l.dead || l.springs("crash at request", "after", "", route) {
		a.close()
		if err == nil {
			_ = resp.Body.Close() // nobody reads it
			err = errDead
		}
		return nil, err
	}
	a.ReadCloser, a.response = resp.Body, resp
	resp.Body = a
	return resp, nil
}

// routeOf names the route of a request and the task in its path.
func routeOf(req *http.Request) (agentjobtest.Route, string) {
	path := strings.TrimPrefix(req.URL.Path, "/api/agents/")
	parts := strings.Split(path, "/")
	if len(parts) == 3 {
		return agentjobtest.Route(req.Method + " " + parts[2]), parts[1]
	}
	return agentjobtest.Route(req.Method + " " + path), ""
}

// An answerBody tells when an answer was read whole.
type answerBody struct {
	io.ReadCloser
	life     *life
	route    agentjobtest.Route
	errand   *errand
	response *http.Response
	read     bytes.Buffer
	closed   bool
	end      func()
}

const maxAnswerSeen = 1 << 20

func (a *answerBody) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.read.Write(p[:min(n, max(0, maxAnswerSeen-a.read.Len()))])
	if err == io.EOF {
		a.life.x.mu.Lock()
		a.life.answered(a.route, a.errand, a.response, a.read.String())
		a.close()
		a.life.x.mu.Unlock()
	}
	return n, err
}

func (a *answerBody) Close() error {
	a.life.x.mu.Lock()
	a.close()
	a.life.x.mu.Unlock()
	return a.ReadCloser.Close()
}

// close notes the end of the request. x.mu is held.
func (a *answerBody) close() {
	if a.closed {
		return
	}
	a.closed = true
	if a.route == agentjobtest.RoutePoll {
		a.life.polling--
	}
	a.end()
}
