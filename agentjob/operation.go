package agentjob

import (
	"time"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

// An operation is one thing to ask of the platform.
type operation struct {
	name   string // APIError.Op
	does   string // in errors
	policy httpx.Policy
}

// The operations and how often each may be sent.
var (
	opRegister = operation{"register", "register", httpx.Policy{
		Attempts: 1, Attempt: time.Minute, Total: time.Minute, MaxBody: 1 << 20,
		Why: "each try eats the allowance of two a day, also a failed one; a wallet is made inside the request",
	}}
	opMe = operation{"me", "read the provider's profile", httpx.Policy{
		Attempts: 4, Attempt: 15 * time.Second, Total: time.Minute, MaxBody: 1 << 20,
		Why: "reading changes nothing",
	}}
	opHeartbeat = operation{"heartbeat", "send a heartbeat", httpx.Policy{
		Attempts: 3, Attempt: 10 * time.Second, Total: 30 * time.Second, MaxBody: 1 << 20,
		Why: "two beats mean what one means; a late one is worth less than the next",
	}}
	opPoll = operation{"poll", "poll for a task", httpx.Policy{
		Attempts: 1, Attempt: pollSlack, Total: pollSlack, MaxBody: 32 << 20,
		Why: "a poll may have claimed; the caller's loop decides. The time is added to the wait. A conversation may be long",
	}}
	opProgress = operation{"progress", "read the progress of", httpx.Policy{
		Attempts: 4, Attempt: 10 * time.Second, Total: 30 * time.Second, MaxBody: 1 << 20,
		Why: "reading changes nothing",
	}}
	opReport = operation{"report progress", "report progress of", httpx.Policy{
		Attempts: 1, Attempt: 10 * time.Second, Total: 10 * time.Second, MaxBody: 1 << 20,
		Why: "the next report replaces this one, and one in three seconds is allowed",
	}}
	opRespond = operation{"respond", "respond to", httpx.Policy{
		Attempts: 4, Attempt: 30 * time.Second, Total: 2 * time.Minute, MaxBody: 1 << 20,
		Why: "the platform takes a repeat of the same bytes as the same reply",
	}}
)

var operations = []operation{opRegister, opMe, opHeartbeat, opPoll, opProgress, opReport, opRespond}

// pollSlack is how much longer than its wait a poll may take.
const pollSlack = 15 * time.Second
