package agentjob

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStateTransitions(t *testing.T) {
	states := []State{"", StateClaimed, StateSaved, StateEnded}
	allowed := map[string]bool{
		" claimed": true, "claimed claimed": true, "claimed saved": true, "claimed ended": true,
		"saved ended": true, "ended ended": true,
	}
	for _, from := range states {
		for _, to := range states {
			require.Equal(t, allowed[string(from)+" "+string(to)], from.CanBecome(to), "%q to %q", from, to)
		}
	}
	require.False(t, State("new").CanBecome(StateSaved))
}

func TestBackoffStaysInBounds(t *testing.T) {
	for n := -1; n < 200; n++ {
		for range 20 {
			d := backoff(n)
			require.GreaterOrEqual(t, d, backoffBase/2)
			require.LessOrEqual(t, d, backoffCap)
		}
	}
	for _, wish := range []time.Duration{-time.Hour, 0, time.Hour, 1<<63 - 1} {
		d := retryDelay(3, &APIError{RetryAfter: wish})
		require.Greater(t, d, time.Duration(0))
		require.LessOrEqual(t, d, maxRetryAfter)
	}
	require.Equal(t, maxRetryAfter, retryDelay(1, &APIError{RetryAfter: time.Hour}))
}

func TestGateEndsItsContextWhenItShuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(context.Background())
		g := newGate(parent)
		defer g.close()
		require.False(t, g.isOpen())
		require.True(t, g.set(notReady, false, nil))
		open, ok := g.wait()
		require.True(t, ok)
		require.True(t, g.set(storeFails, true, errors.New("full")))
		require.False(t, g.set(storeFails, true, errors.New("still full")))
		require.NoError(t, open.Err(), "an answer may be under way")
		time.Sleep(pollGrace)
		synctest.Wait()
		require.Error(t, open.Err())
		g.set(circuitOpen, true, nil)
		g.set(storeFails, false, nil)
		require.False(t, g.isOpen(), "one reason is enough")
		g.set(circuitOpen, false, nil)
		require.True(t, g.isOpen())
		open, ok = g.wait()
		require.True(t, ok)
		g.set(notReady, true, errors.New("no model"))
		require.Error(t, open.Err(), "no task has caused this")
		g.set(notReady, false, nil)
		cancel()
		_, ok = g.wait()
		require.False(t, ok, "the parent's end ends the gate")
	})
}

func TestGateWaitEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(context.Background())
		g := newGate(parent)
		done := make(chan bool)
		go func() { _, ok := g.wait(); done <- ok }()
		synctest.Wait()
		cancel()
		require.False(t, <-done)
	})
}

func TestLogTextLeavesOutWhatIsNotOurs(t *testing.T) {
	secret := errors.New("chat text")
	require.NotContains(t, SafeText(fmt.Errorf("ours: %w", foreign(secret))), "chat text")
	require.NotContains(t, SafeText(&APIError{Op: "poll", StatusCode: 500, Message: "chat text"}), "chat text")
	require.NotContains(t, SafeText(&PanicError{Value: "chat text"}), "chat text")
	require.Contains(t, SafeText(errors.New("ours")), "ours")
	require.NoError(t, foreign(nil))
	require.ErrorIs(t, foreign(secret), secret)
	require.NoError(t, Unavailable(nil, time.Second))
}

func TestSessionIDsDifferByPlatformProviderAndTask(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"", "ab", "c"}} {
		id := sessionID(parts[0], parts[1], parts[2])
		require.Regexp(t, "^[0-9a-f]{64}$", id)
		require.False(t, seen[id])
		seen[id] = true
	}
	require.Equal(t, sessionID("a", "b", "c"), sessionID("a", "b", "c"))
}
