package agentjob

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

// huge is longer than any answer can be.
const huge = 3 << 30

// everyOperation is each operation of a worker, with the bound of its answer.
var everyOperation = []struct {
	operation
	call func(context.Context, *Client) error
}{
	{opMe, func(ctx context.Context, c *Client) error { _, err := c.Me(ctx); return err }},
	{opHeartbeat, func(ctx context.Context, c *Client) error { _, err := c.Heartbeat(ctx, Heartbeat{}); return err }},
	{opPoll, func(ctx context.Context, c *Client) error { _, err := c.PollTask(ctx, Poll{}); return err }},
	{opProgress, func(ctx context.Context, c *Client) error { _, err := c.Progress(ctx, "t"); return err }},
	{opReport, func(ctx context.Context, c *Client) error { return c.ReportProgress(ctx, "t", ProgressReport{Seq: 1}) }},
	{opRespond, func(ctx context.Context, c *Client) error {
		_, err := c.Respond(ctx, "t", Response{Text: "x"})
		return err
	}},
}

// An answer of three gigabytes, announced, unannounced, or a few megabytes that unpack to it, costs as
// much memory as the longest good answer, and no more of it is read.
func TestHugeAnswersAreCutAtTheirBound(t *testing.T) {
	const readAhead = 1 << 20 // of the transport, which has buffers of its own
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	packed := pack(t, bytes.Repeat(spaces, 64))
	for name, write := range map[string]func(http.ResponseWriter, io.Writer){
		"announced": func(w http.ResponseWriter, body io.Writer) {
			w.Header().Set("Content-Length", fmt.Sprint(huge))
			repeat(body, spaces, huge/len(spaces))
		},
		"unannounced": func(_ http.ResponseWriter, body io.Writer) { repeat(body, spaces, huge/len(spaces)) },
		"packed": func(w http.ResponseWriter, body io.Writer) {
			w.Header().Set("Content-Encoding", "gzip")
			repeat(body, packed, huge/(64<<20))
		},
		"of a refusal": func(w http.ResponseWriter, body io.Writer) {
			w.WriteHeader(http.StatusConflict)
			repeat(body, spaces, huge/len(spaces))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var came atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // a request that is cut is no matter here
				write(w, w)
			}))
			defer srv.Close()
			transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				return counted{conn, &came}, err
			}}
			defer transport.CloseIdleConnections()
			client, err := NewClient(ClientConfig{BaseURL: srv.URL, APIKey: secret.New("ak_EXAMPLE"), HTTPClient: &http.Client{Transport: transport}})
			require.NoError(t, err)
			for _, op := range everyOperation {
				came.Store(0)
				var err error
				took := allocated(func() { err = op.call(t.Context(), client.once()) })
				require.ErrorIs(t, err, ErrMalformedResponse, op.name)
				bound := op.policy.MaxBody
				// Reading grows its buffer by doubling at most, and unpacking needs a little.
				require.Less(t, took, 8*bound+4<<20, "%s: bytes of memory", op.name)
				require.Less(t, came.Load(), bound+readAhead, "%s: bytes read", op.name)
			}
			srv.CloseClientConnections()
			left := live()
			require.Less(t, left, int64(64<<20), "bytes that are still held")
		})
	}
}

// pack returns a text as a member of a gzip file, of which several may follow one another.
func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// repeat writes until the reader has enough.
func repeat(w io.Writer, part []byte, times int) {
	for range times {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// A counted connection adds up what is read from it.
type counted struct {
	net.Conn
	came *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.came.Add(int64(n))
	return n, err
}

// allocated returns how many bytes f allocates in all, which is no less than what it ever holds.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// live returns the bytes that are held.
func live() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Ten times the conversation takes ten times the memory to read, and to write down, not more.
func TestLongConversationsGrowLinearly(t *testing.T) {
	sealer, err := secret.NewSealer(t.Context(), secret.KeyFunc(func(context.Context) ([]secret.Key, error) {
		return []secret.Key{secret.NewKey()}, nil
	}))
	require.NoError(t, err)
	cost := func(messages int) int64 {
		body := []byte(`{"task":{"id":"t","messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"Hello"},`, messages), ",") + `]}}`)
		return allocated(func() {
			task, err := decodePoll(body)
			require.NoError(t, err)
			require.Len(t, task.Messages, messages)
			data, err := EncodeRecord(Record{Provider: "p", TaskID: task.ID, State: StateClaimed, Content: Content{Task: task.Raw}}, sealer)
			require.NoError(t, err)
			rec, err := DecodeRecord(data, sealer)
			require.NoError(t, err)
			task, err = decodeStoredTask(rec.Content.Task)
			require.NoError(t, err)
			require.Len(t, task.Messages, messages)
		})
	}
	cost(10) // what is made once
	small, large := cost(1_000), cost(10_000)
	require.Less(t, large, 13*small, "1,000 messages take %d bytes", small)
}
