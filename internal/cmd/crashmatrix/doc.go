// Crashmatrix kills the real worker at every step of a task's life, starts it again, and counts what
// became of the tasks:
//
//	go run ./internal/cmd/crashmatrix                       # everything, 50 runs of a row: some minutes
//	go run ./internal/cmd/crashmatrix -runs 5 -store file   # a look at the other store
//	go run ./internal/cmd/crashmatrix -only '^kill: after put saved$'
//
// The last line is lost=0 duplicated=0 regenerated=0, and the exit code 0, if every promise was
// kept. -h tells what the columns mean.
//
// # A run
//
// The platform is agentjobtest's, in this process. The provider is this program again, in a process of its own: the
// worker on a local store as anyone would use it, with thin wrappers at the public seams (its store and its
// HTTP transport) that tell where it is. At the point that the row names it sends SIGKILL to itself: before or
// after a durable write, a request or a part of the handler, or at a random moment during it. Then the next provider starts on the
// same state, is handed out again what it has records of, must call that duplicates, answers a new message, drains,
// and the platform's clock passes every deadline. Only then it is judged, by three witnesses: what the platform and the customer saw,
// the records that are left, and what the providers told of every step before they took it. A reply tells
// the process that made it, so that one which was made again shows.
//
// # The rows
//
//   - kill: each point of a life, also twice and three times in a row, and of the end of one
//   - resume: the same with Config.Resume
//   - kill, no idempotency: on a platform that takes a repeated reply as a second message and charges for
//     it. Those that follow from the one window that no provider can close are marked, explained and not counted
//   - fault, fault and kill: every fault of agentjobtest on every route, without a crash and with one while it lasts
//   - two workers: on one state
//   - pause: SIGSTOP and SIGCONT at a point, over a poll, beyond a deadline
//   - clock: the platform's jumps under a running provider and between two; the provider's machine's
//     between two, by moving the times in the records the other way
//
// # What it can't show
//
// SIGKILL does not lose what the operating system holds in memory: the command powercut is about that. The
// clock of a provider's machine does not jump while it runs, since one process can't have a clock of its own.
package main
