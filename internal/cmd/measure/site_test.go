package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testSite has a platform in a process of its own, which ends with the test.
func testSite(t *testing.T) *site {
	s, err := newSite(context.WithoutCancel(t.Context()), &bench{dir: t.TempDir(), rounds: 1})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.platform.stop()) })
	return s
}

func TestBothPartiesAnswerABatch(t *testing.T) {
	s := testSite(t)
	for name, start := range map[string]func(*shelf) (*party, error){
		"worker":    s.worker(2, noop),
		"bare loop": func(store *shelf) (*party, error) { return s.startBare(store, 2) },
	} {
		out, err := s.serves(Batch{Tasks: 5, Messages: 3}, start)(t.Context())
		require.NoError(t, err, name)
		assert.Positive(t, out["rate"], name)
		assert.Positive(t, out["p50"], name)
		assert.GreaterOrEqual(t, out["p99"], out["p50"], name)
	}
}

func TestSavedRepliesAreDeliveredOnce(t *testing.T) {
	s := testSite(t)
	for name, drain := range map[string]measure{"worker": s.deliverAll(20), "posted": s.postAll(20), "recorded": s.recordAll(20)} {
		out, err := drain(t.Context())
		require.NoError(t, err, name)
		assert.Positive(t, out["rate"], name)
	}
}

func TestThePlatformNoticesAWrongReply(t *testing.T) {
	s := testSite(t)
	batch, err := s.prepare(t.Context(), Batch{Tasks: 2, Claimed: true})
	require.NoError(t, err)
	plain := bare{http.DefaultClient, s.url, provider}
	defer http.DefaultClient.CloseIdleConnections()
	require.NoError(t, plain.respond(t.Context(), taskID(batch, 0), []byte(`{"text":"x"}`)))
	require.ErrorContains(t, plain.respond(t.Context(), taskID(batch, 0), []byte(`{"text":"x"}`)), "404")
	_, err = s.awaitReplies(t.Context())
	require.ErrorContains(t, err, "a second reply to a task")
}

func TestCrowdsOfAllKindsAreMeasured(t *testing.T) {
	s := testSite(t)
	require.NoError(t, s.platform.call(t.Context(), "Hold", 10*time.Millisecond, &None{}))
	for _, kind := range []string{polls, workers} {
		out, err := s.idles(kind, 3, 1500*time.Millisecond)(t.Context())
		require.NoError(t, err, kind)
		assert.GreaterOrEqual(t, out["goroutines"], 3.0, kind)
	}
	for _, kind := range []string{leases, nobody} {
		out, err := s.idles(kind, 3, 0)(t.Context())
		require.NoError(t, err, kind)
		assert.NotContains(t, out, "cpu", kind)
	}
}

func TestStoreAndDiskAreMeasured(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	raw, err := b.rawAppend(t.Context(), 50*time.Millisecond)
	require.NoError(t, err)
	shared, err := b.storeWrites(t.Context(), 4, 50*time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, raw["rate"])
	assert.Positive(t, shared["rate"])
}

func TestACallEndsWithItsContext(t *testing.T) {
	s := testSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := s.awaitReplies(ctx)
	require.ErrorContains(t, err, "no tasks")
	_, err = s.prepare(ctx, Batch{Tasks: 1})
	require.NoError(t, err)
	cancel()
	_, err = s.awaitReplies(ctx)
	require.ErrorContains(t, err, "canceled")
}
