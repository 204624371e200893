package agentjobtest

import (
	"net"
	"net/http"
)

// NewServerOn starts a platform on a listener of the caller's, which Close closes. With
// [Server.RestoreAgent] a program continues where an earlier one stopped: providers keep
// the base URL that they registered at.
func NewServerOn(l net.Listener, settings Settings) *Server {
	return start(settings, l, "http://"+l.Addr().String(), &http.Transport{MaxIdleConnsPerHost: 16})
}

// RestoreAgent makes an agent that an earlier server had: with the same id, name and key,
// but without its chats, heartbeats and use of the day. A key is the one of the agent that
// it was given to last.
func (s *Server) RestoreAgent(id, name, key string) *Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAgent(id, name, key)
}
