// Package agentjobtest is the AgentJob platform in one process, as package
// net/http/httptest is a server: for tests of providers and for trying things out.
//
//	srv := agentjobtest.NewServer(agentjobtest.Settings{})
//	defer srv.Close()
//	agent := srv.AddAgent("My agent")
//	// start the provider under test with srv.URL and agent.Key, then:
//	err := srv.Await(ctx, agentjobtest.RouteHeartbeat, 1) // messages go to agents that are online
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
// A server runs from its constructor to Close, which ends long polls and waits and leaves
// no goroutine. It keeps the latest requests and the latest tasks that are over, as [Settings]
// bounds them, so that it may run for long. Everything is safe for concurrent use. Long polls and delays take real time,
// or a bubble's; all that is told in dates follows [Settings].Now. A program with a server
// of its own mounts a [Server] as a handler.
//
// # Errors
//
// The website's side returns typed errors: [ErrOffline], [ErrFileType], [ErrCancelled],
// [ErrExpired]. Waits return the context's error, or http.ErrServerClosed.
//
// # Security
//
// Keys are invented and the request log keeps them for assertions. Don't put a
// real key in.
//
// # Money
//
// No money moves. Sending a message takes one of the agent's five free messages of the UTC
// day, across all customers, or records a payment of 0.01 USDC; a cancelled or expired message
// keeps its charge, since the guide promises no refund. The profile's revenue
// counts the paid messages that got a reply. [Settings].NoResponseIdempotency shows what a
// platform that did not recognise a repeated reply would charge.
//
// # Compatibility
//
// Modelled from the platform's provider guide of 2026-11-09: registration with its
// limits and their order, heartbeats and the two-minute online window, attachment types,
// progress numbers and the three-second rule, replies, late and cancelled tasks.
// Recorded by public programs before it: the bodies of a registration, of its replay and of
// a missing key, the HTML page of an unknown path, the profile's names, the deadline
// 30 minutes after the claim, and two chats at once. From older pages of the
// platform: the body of a heartbeat's answer. From public clients: the poll's {"task"} and
// the names in a task.
//
// Guesses, since all of these are silent: the bounds of wait, the open status
// ("processing"), the names of the limits, the words of errors other than 401's, the status
// codes of refused input, that amount_usdc of a free message is the price too, and that
// a reply which comes beside a later question is not shown in that question's task.
// File, overview and withdrawal routes are not there yet, so a reply with
// attachment ids is refused: no such file can exist.
package agentjobtest
