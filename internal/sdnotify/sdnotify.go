package sdnotify

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Notifier tells a service manager. Its zero value tells nobody. It is safe for concurrent use.
type Notifier struct {
	socket   string
	watchdog time.Duration
}

// FromEnv returns the notifier of a process with these variables.
func FromEnv(getenv func(string) string) Notifier {
	n := Notifier{socket: getenv("NOTIFY_SOCKET")}
	usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	pid := getenv("WATCHDOG_PID")
	if err == nil && usec > 0 && usec < int64(24*time.Hour/time.Microsecond)*365 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// Watchdog returns within which time the manager wants to hear Alive, 0 if it doesn't.
func (n Notifier) Watchdog() time.Duration { return n.watchdog }

// Ready says that the service is up.
func (n Notifier) Ready() error { return n.send("READY=1") }

// Stopping says that it is on its way down.
func (n Notifier) Stopping() error { return n.send("STOPPING=1") }

// Alive feeds the watchdog.
func (n Notifier) Alive() error { return n.send("WATCHDOG=1") }

// Status says in one line how it is.
func (n Notifier) Status(text string) error {
	return n.send("STATUS=" + strings.Join(strings.Fields(text), " "))
}

func (n Notifier) send(state string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"}) // a leading @ is an abstract name
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer func() { _ = conn.Close() }() // all is sent, or not
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}
