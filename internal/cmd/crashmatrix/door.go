package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A door is the platform's listener. It knows which connections the platform still serves: the poll of
// a provider that was killed may take a task with it for as long as the platform has not noticed. That
// may happen on the real one too, but here it would happen to the task that is to show that all is well.
type door struct {
	net.Listener
	mu   sync.Mutex
	open map[*guest]bool
}

type guest struct {
	net.Conn
	door *door
}

func openDoor() (*door, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return &door{Listener: l, open: map[*guest]bool{}}, nil
}

// Accept lets a connection in.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{c, d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[g] = true
	return g, nil
}

// Close is called by net/http when the connection's last handler has returned.
func (g *guest) Close() error {
	g.door.mu.Lock()
	delete(g.door.open, g)
	g.door.mu.Unlock()
	return g.Conn.Close()
}

func (d *door) guests() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// clear returns when the platform has noticed that all its clients are gone.
func (d *door) clear(ctx context.Context) error {
	// Connections are let in one after the other: when this one is served, the earlier ones are known.
	last := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Addr().String()+"/", nil)
	if err != nil {
		return err
	}
	answer, err := last.Do(request)
	if err != nil {
		return fmt.Errorf("the platform does not answer: %w", err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close() // read to its end
	for err == nil && d.guests() > 0 {
		err = pause(ctx, time.Millisecond)
	}
	return err
}
