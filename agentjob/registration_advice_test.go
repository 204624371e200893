package agentjob

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhenTheNextRegistrationMakesSense(t *testing.T) {
	now := time.Date(2026, 11, 9, 15, 0, 0, 0, time.FixedZone("", 3*3600)) // 12:00 UTC
	midnight := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	never := time.Time{}
	ago := func(d time.Duration, outcome attemptOutcome) *registrationAttempt {
		return &registrationAttempt{At: now.Add(-d), Outcome: outcome}
	}
	success := func(body string) *registrationAttempt {
		return &registrationAttempt{At: now, Status: 201, AnsweredAt: now, Answer: body}
	}
	retryAfter := func(a *registrationAttempt, d time.Duration) *registrationAttempt { a.RetryAfter = d; return a }
	for name, c := range map[string]struct {
		attempts []*registrationAttempt
		at       time.Time
	}{
		"nothing tried":            {nil, now},
		"registered":               {[]*registrationAttempt{ago(time.Hour, attemptBusy), success(registered)}, never},
		"exists without key":       {[]*registrationAttempt{success(`{"data":{"agentId":"a","apiKey":null}}`)}, never},
		"lost answer":              {[]*registrationAttempt{ago(time.Minute, attemptSent)}, now},
		"lost answer long ago":     {[]*registrationAttempt{ago(100*time.Hour, attemptSent)}, now},
		"unreadable":               {[]*registrationAttempt{ago(time.Minute, attemptUnreadable)}, now},
		"busy":                     {[]*registrationAttempt{ago(10*time.Second, attemptBusy)}, now.Add(50 * time.Second)},
		"busy, asked to wait":      {[]*registrationAttempt{retryAfter(ago(10*time.Second, attemptBusy), time.Hour)}, now.Add(time.Hour - 10*time.Second)},
		"busy, long ago":           {[]*registrationAttempt{ago(time.Hour, attemptBusy)}, now},
		"unavailable":              {[]*registrationAttempt{ago(time.Minute, attemptUnavailable)}, now.Add(9 * time.Minute)},
		"disabled":                 {[]*registrationAttempt{ago(time.Minute, attemptDisabled)}, midnight},
		"disabled yesterday":       {[]*registrationAttempt{ago(13*time.Hour, attemptDisabled)}, now},
		"limited":                  {[]*registrationAttempt{ago(time.Minute, attemptRateLimited)}, midnight},
		"limited yesterday":        {[]*registrationAttempt{ago(13*time.Hour, attemptRateLimited)}, now},
		"refused":                  {[]*registrationAttempt{ago(time.Minute, attemptRefused)}, never},
		"two tries today":          {[]*registrationAttempt{ago(2*time.Hour, attemptBusy), ago(time.Hour, attemptSent)}, midnight},
		"one today, one yesterday": {[]*registrationAttempt{ago(13*time.Hour, attemptBusy), ago(time.Hour, attemptSent)}, now},
		"two that were never sent": {[]*registrationAttempt{ago(time.Hour, attemptNotSent), ago(time.Minute, attemptNotSent), ago(time.Minute, attemptNotSent)}, now},
		"two, the last asks for days": {
			[]*registrationAttempt{ago(2*time.Hour, attemptBusy), retryAfter(ago(time.Hour, attemptBusy), 48*time.Hour)},
			now.Add(47 * time.Hour),
		},
	} {
		file := filepath.Join(t.TempDir(), "registration.json")
		f := &registrationFile{Format: 1, BaseURL: "https://h", IdempotencyKey: "k", Attempts: c.attempts, path: file}
		require.NoError(t, f.write())
		advice, err := NextRegistrationTry(file, now)
		require.NoError(t, err)
		assert.True(t, c.at.Equal(advice.At), "%s: %v, want %v", name, advice.At, c.at)
		assert.NotEmpty(t, advice.Reason)
	}
	advice, err := NextRegistrationTry(filepath.Join(t.TempDir(), "none"), now)
	require.NoError(t, err)
	assert.Equal(t, now, advice.At)
}
