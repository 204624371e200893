package httpx

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that answers 101 hands its connection over, and no read of it would ever end.
func TestSwitchOfProtocolsEndsAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				_, _ = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"))
				_, _ = in.ReadByte() // until the client closes
			}()
		}
	}()
	base := &url.URL{Scheme: "http", Host: l.Addr().String()}
	client := New(base, nil, "test", slog.New(slog.DiscardHandler))
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	answer, err := client.Do(ctx, &Request{
		Op: "test", Method: http.MethodGet, Path: "/",
		Policy: Policy{Attempts: 1, Attempt: time.Minute, Total: time.Minute, MaxBody: 1 << 10},
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, answer.Status)
	require.ErrorIs(t, answer.Damage, errSwitched)
	require.NoError(t, ctx.Err())
}
