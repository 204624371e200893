package sdnotify

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func env(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func TestWhatIsSaid(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no datagram sockets with names, and no systemd")
	}
	sockets := []string{filepath.Join(t.TempDir(), "notify")}
	if runtime.GOOS == "linux" {
		sockets = append(sockets, "@agentjob-sdnotify-test-"+strconv.Itoa(os.Getpid()))
	}
	for _, socket := range sockets {
		manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		require.NoError(t, err)
		n := FromEnv(env(map[string]string{"NOTIFY_SOCKET": socket}))
		for want, err := range map[string]error{
			"READY=1": n.Ready(), "WATCHDOG=1": n.Alive(), "STOPPING=1": n.Stopping(), "STATUS=two lines": n.Status("two\nlines"),
		} {
			require.NoError(t, err, want)
		}
		heard := map[string]bool{}
		for range 4 {
			buf := make([]byte, 100)
			require.NoError(t, manager.SetReadDeadline(time.Now().Add(10*time.Second)))
			size, err := manager.Read(buf)
			require.NoError(t, err)
			heard[string(buf[:size])] = true
		}
		require.Equal(t, map[string]bool{"READY=1": true, "WATCHDOG=1": true, "STOPPING=1": true, "STATUS=two lines": true}, heard)
		require.NoError(t, manager.Close())
		require.Error(t, n.Ready(), "nobody listens any more")
	}
}

func TestWithoutAManagerNothingIsSaid(t *testing.T) {
	n := FromEnv(env(nil))
	require.NoError(t, n.Ready())
	require.NoError(t, Notifier{}.Alive())
	require.Zero(t, n.Watchdog())
}

func TestWatchdog(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	for _, row := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"30000000", "", 30 * time.Second},
		{"30000000", self, 30 * time.Second},
		{"30000000", "1" + self, 0},
		{"0", "", 0},
		{"-5", "", 0},
		{"x", "", 0},
		{"99999999999999999", "", 0},
	} {
		n := FromEnv(env(map[string]string{"WATCHDOG_USEC": row.usec, "WATCHDOG_PID": row.pid}))
		require.Equal(t, row.want, n.Watchdog(), row)
	}
}
