package agentjobtest

import "time"

// Settings are the platform's rules. The zero value of a field is the platform's
// default where one is known. [Server.Configure] changes them while the server runs.
type Settings struct {
	// Now is the platform's clock; nil is time.Now. Long polls are held in real (or bubble) time.
	Now func() time.Time

	RegistrationDisabled bool // answers 503 "disabled"
	RegistrationBusy     bool // answers 503 "busy"
	RegistrationFails    bool // answers 500 after the daily quota was taken, as each retry is
	IPDailyLimit         Limit
	DailyLimit           Limit
	ReplayReturnsKey     bool // a repeated registration returns the key again instead of null

	HeartbeatInterval  time.Duration // suggested to providers; 0: 45 s
	Deadline           time.Duration // from a claim; 0: 30 minutes
	MaxConcurrentChats int           // open claims of an agent; 0: 2

	// NoResponseIdempotency makes a repeated reply a second message with a
	// second charge, which the real platform does not do.
	NoResponseIdempotency bool

	Shape          Shape     // of bodies
	CamelCase      bool      // names in answers: chatId instead of chat_id
	AmountAsNumber bool      // amounts: 0.01 instead of "0.01"
	Empty          EmptyPoll // how a poll without a task is answered
	DeadlineInTask bool      // whether a task carries its deadline

	// MaxRequests bounds the request log; 0: 100,000. Older ones are dropped, also when the
	// bodies take more than 64 MiB.
	MaxRequests int

	// MaxTasks bounds the tasks that are over and still known; 0: 100,000. Beyond it the older half
	// is forgotten: their routes answer 404 and [Server.Counts] is zero. A [Message] that is held
	// still tells its own.
	MaxTasks int
}

// A Limit is a daily limit. Its zero value is the platform's default; Blocked is
// none at all.
type Limit int

// Blocked is a limit of zero.
const Blocked Limit = -1

func (l Limit) value(def int) int {
	switch {
	case l < 0:
		return 0
	case l == 0:
		return def
	}
	return int(l)
}

func (s Settings) filled() Settings {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.HeartbeatInterval == 0 {
		s.HeartbeatInterval = 45 * time.Second
	}
	if s.Deadline == 0 {
		s.Deadline = 30 * time.Minute
	}
	if s.MaxConcurrentChats == 0 {
		s.MaxConcurrentChats = 2
	}
	if s.MaxRequests == 0 {
		s.MaxRequests = 100_000
	}
	if s.MaxTasks == 0 {
		s.MaxTasks = 100_000
	}
	return s
}
