// Package agentjobtest is the AgentJob platform in one process, as package
// net/http/httptest is a server: for tests of providers and for trying things out.
//
//	srv := agentjobtest.NewServer(agentjobtest.Settings{})
//	defer srv.Close()
//	agent := srv.AddAgent("My agent")
//	// point the provider under test at srv.URL with agent.Key, then:
//	message, err := srv.User("alice").Chat(agent).Send("Hello")
//	reply, err := message.WaitReply(ctx)
//
// A [Server] speaks the provider's REST API on a loopback socket, or on an
// in-memory network for testing/synctest bubbles, which real sockets would
// block ([NewPipeServer]). The website's side is [User], [Chat] and [Message].
// [Server.Inject] makes requests fail, [Settings] change rules and body shapes,
// [Server.Requests] and [Server.Counts] tell what happened. The package also has
// a memory [Store] for workers.
//
// # Lifecycle
//
// A server runs from its constructor to Close, which ends long polls and leaves
// no goroutine. Everything is safe for concurrent use.
//
// # Errors
//
// The website's side returns typed errors: [ErrOffline], [ErrCancelled],
// [ErrExpired].
//
// # Security
//
// Keys are invented and the request log keeps them for assertions. Don't put a
// real key in.
//
// # Compatibility
//
// Modelled from the platform's provider guide of 2026-11-09: registration with its
// limits and their order, heartbeats and the two-minute online window, claims
// by long poll, deadlines, progress numbers and the three-second rule, replies, late and cancelled
// tasks. Guesses, since the guide is silent: the names inside the profile and
// task objects, the open status ("processing"), the words of errors, and the
// status codes of refused input. File, overview and withdrawal routes are not there yet.
package agentjobtest
