package agentjob

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	backoffBase   = 500 * time.Millisecond
	backoffCap    = 30 * time.Second
	maxRetryAfter = time.Minute // a longer wish of the platform's is not granted: customers wait
)

// backoff returns how long to wait after the nth failure in a row (1, 2, ...):
// a random part between half and all of base*2^(n-1), capped. Half of it is fixed, so that a
// lucky draw does not become a hot loop.
func backoff(n int) time.Duration {
	ceiling := backoffCap
	if n < 8 {
		ceiling = min(backoffBase<<max(n-1, 0), backoffCap)
	}
	return ceiling/2 + rand.N(ceiling/2+1)
}

// retryDelay is backoff(n), or the bounded wish of the platform if that is longer.
func retryDelay(n int, err error) time.Duration {
	delay := backoff(n)
	if e, ok := errors.AsType[*APIError](err); ok && e.RetryAfter > 0 {
		delay = max(delay, min(e.RetryAfter, maxRetryAfter))
	}
	return delay
}

// sleep waits for d or until ctx is done, which it reports.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
