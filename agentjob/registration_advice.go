package agentjob

import (
	"errors"
	"io/fs"
	"time"
)

// A RegistrationAdvice says when to call [Client.Register] with a file again.
type RegistrationAdvice struct {
	At     time.Time // not before the time asked about; the zero time means never
	Reason string
}

// triesPerDay is the platform's default limit for one IP address and UTC day. It
// counts tries, successful or not, and can be set differently there.
const triesPerDay = 2

const (
	busyPause        = time.Minute
	unavailablePause = 10 * time.Minute
)

// NextRegistrationTry tells from the attempts in the file when the next one makes
// sense. It knows nothing of other tries from the same IP address. It asks nobody and
// changes nothing. A missing file means now.
func NextRegistrationTry(file string, now time.Time) (RegistrationAdvice, error) {
	f, err := readRegistration(file)
	if errors.Is(err, fs.ErrNotExist) {
		return RegistrationAdvice{now, "nothing was tried yet"}, nil
	}
	if err != nil {
		return RegistrationAdvice{}, err
	}
	return f.advise(now), nil
}

func (f *registrationFile) advise(now time.Time) RegistrationAdvice {
	switch f.registration().Outcome {
	case Registered:
		return RegistrationAdvice{Reason: "the agent is registered, and its key is in the file"}
	case ExistsKeyNotReturned:
		return RegistrationAdvice{Reason: "the agent exists, and the platform does not return its key again; reset the key in the dashboard"}
	}
	if len(f.Attempts) == 0 {
		return RegistrationAdvice{now, "nothing was tried yet"}
	}
	advice := f.Attempts[len(f.Attempts)-1].advise(now)
	if !advice.At.IsZero() && f.triesOn(now) >= triesPerDay && advice.At.Before(nextUTCDay(now)) {
		advice = RegistrationAdvice{nextUTCDay(now), "two tries were made today, the platform's limit for an IP address"}
	}
	return advice
}

// advise says what follows from the last attempt alone.
func (a *registrationAttempt) advise(now time.Time) RegistrationAdvice {
	after := func(at time.Time, reason string) RegistrationAdvice {
		if at.Before(now) {
			at = now
		}
		return RegistrationAdvice{at, reason}
	}
	ended := a.At
	if !a.AnsweredAt.IsZero() {
		ended = a.AnsweredAt
	}
	switch a.Outcome {
	case attemptRateLimited:
		return after(nextUTCDay(ended), "a daily limit was hit; the limits begin anew at 00:00 UTC")
	case attemptDisabled:
		return after(nextUTCDay(ended), "the platform has switched registration off; ask it, or register by email")
	case attemptBusy:
		return after(ended.Add(max(busyPause, a.RetryAfter)), "the platform was busy with another registration")
	case attemptUnavailable:
		return after(ended.Add(max(unavailablePause, a.RetryAfter)), "registration did not work at the platform")
	case attemptNotSent:
		return after(now, "the platform could not be reached; check the network and the base URL")
	case attemptRefused:
		return RegistrationAdvice{Reason: "the platform refuses this request, and would again; see the problem in the file. For another name use another file"}
	default:
		return after(now, "an answer was lost; the agent may exist, and the same key may still return its provider key within 24 hours")
	}
}

// triesOn counts the attempts of now's UTC day that may have reached the platform.
func (f *registrationFile) triesOn(now time.Time) int {
	n := 0
	for _, a := range f.Attempts {
		if a.Outcome != attemptNotSent && nextUTCDay(a.At).Equal(nextUTCDay(now)) {
			n++
		}
	}
	return n
}
