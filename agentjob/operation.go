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
	opOverview = operation{"overview", "read the provider's overview", httpx.Policy{
		Attempts: 4, Attempt: 15 * time.Second, Total: time.Minute, MaxBody: 1 << 20,
		Why: "reading changes nothing",
	}}
	opQuota = operation{"registration quota", "read the registration quota", httpx.Policy{
		Attempts: 4, Attempt: 15 * time.Second, Total: time.Minute, MaxBody: 1 << 20,
		Why: "reading changes nothing",
	}}
	opReserveFile = operation{"reserve file", "reserve a file of", httpx.Policy{
		Attempts: 4, Attempt: 15 * time.Second, Total: time.Minute, MaxBody: 1 << 20,
		Why: "the platform takes the same id and metadata again without another reservation",
	}}
	opUpload = operation{"upload file", "upload a file of", httpx.Policy{
		Attempts: 3, Attempt: transferBase, Total: transferMost, MaxBody: foreignHead,
		Why: "the same bytes at the same URL are the same file, if they can be read again. The time of an attempt grows with the size",
	}}
	opFinalizeFile = operation{"finalize file", "finalize a file of", httpx.Policy{
		Attempts: 4, Attempt: 30 * time.Second, Total: 2 * time.Minute, MaxBody: 1 << 20,
		Why: "looking at the same bytes again finds the same; the platform reads the file inside the request",
	}}
	opOpenAttachment = operation{"open attachment", "fetch an attachment", httpx.Policy{
		Attempts: 3, Attempt: transferBase, Total: transferMost, MaxBody: transferSpeed,
		Why: "reading changes nothing, before the first byte is given out. The time of an attempt grows with the size, and the caller's limit bounds it",
	}}
	opCreateWithdrawal = operation{"create withdrawal", "create a withdrawal", httpx.Policy{
		Attempts: 1, Attempt: time.Minute, Total: time.Minute, MaxBody: 1 << 20,
		Why: "money: whoever keeps the intent decides whether the same key and bytes are sent again",
	}}
	opWithdrawal = operation{"withdrawal", "read a withdrawal", httpx.Policy{
		Attempts: 4, Attempt: 15 * time.Second, Total: time.Minute, MaxBody: 1 << 20,
		Why: "reading changes nothing",
	}}
)

var operations = []operation{
	opRegister, opMe, opHeartbeat, opPoll, opProgress, opReport, opRespond, opOverview, opQuota,
	opReserveFile, opUpload, opFinalizeFile, opOpenAttachment, opCreateWithdrawal, opWithdrawal,
}

// pollSlack is how much longer than its wait a poll may take.
const pollSlack = 15 * time.Second
