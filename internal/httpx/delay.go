package httpx

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	delayBase = 500 * time.Millisecond
	delayCap  = 8 * time.Second

	// maxPause is the longest pause inside a call. If the server asks for a longer
	// one, its answer is returned instead.
	maxPause = 30 * time.Second

	// maxRetryAfter bounds what is read, so that arithmetic with it is safe.
	maxRetryAfter = 365 * 24 * time.Hour
)

// delay returns the pause after the nth failed attempt (1, 2, ...): any time up to
// base*2^(n-1), capped, but no less than the server asked for. ok is false if that is
// more than maxPause.
func delay(n int, asked time.Duration) (pause time.Duration, ok bool) {
	if asked > maxPause {
		return maxPause, false
	}
	ceiling := delayCap
	if n < 6 {
		ceiling = min(delayBase<<max(n-1, 0), delayCap)
	}
	return max(rand.N(ceiling+1), asked), true
}

// RetryAfter reads the Retry-After header: whole or decimal seconds, or a date, which
// is counted from the answer's Date header, or from received without one. It returns
// 0 if the header is absent, unreadable or past, and never more than a year.
func RetryAfter(h http.Header, received time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if at, err := http.ParseTime(value); err == nil {
		now := received
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date
		}
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	// The value tells all: it is 0 for what is no number, and infinite for what is
	// out of range. The comparison is false for "NaN" too.
	seconds, _ := strconv.ParseFloat(value, 64)
	if !(seconds > 0) {
		return 0
	}
	if seconds >= maxRetryAfter.Seconds() {
		return maxRetryAfter
	}
	return time.Duration(seconds * float64(time.Second))
}
