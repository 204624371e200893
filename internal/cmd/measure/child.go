package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
)

// roleVariable makes this program a child in the role that it names.
const roleVariable = "AGENTJOB_MEASURE_ROLE"

// roles are what children can be. The methods of each are called over the child's
// standard input and output.
// Calls that wait end with ctx, when the parent has hung up.
var roles = map[string]func(ctx context.Context) (service any, done func() error, err error){
	"Platform": servePlatform,
	"Idler":    func(context.Context) (any, func() error, error) { return &Idler{}, func() error { return nil }, nil },
}

// play serves a role until the parent has gone or hangs up.
func play(role string) error {
	serve := roles[role]
	if serve == nil {
		return fmt.Errorf("unknown role; unset %s", roleVariable)
	}
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	service, done, err := serve(ctx)
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName(role, service); err != nil {
		return errors.Join(err, done())
	}
	server.ServeConn(pipes{listener{os.Stdin, hangUp}, os.Stdout})
	return done()
}

// A listener notices that the parent has hung up: the server would wait for calls under way.
type listener struct {
	io.Reader
	hangUp func()
}

func (l listener) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err != nil {
		l.hangUp()
	}
	return n, err
}

// pipes are the two ends of a conversation. Close hangs up; what still comes can be read.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// A child is this program again, in a role.
type child struct {
	role   string
	cmd    *exec.Cmd
	client *rpc.Client
}

// startChild starts a child. The end of ctx kills it.
func startChild(ctx context.Context, role string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", role, err)
	}
	return &child{role, cmd, rpc.NewClient(pipes{out, in})}, nil
}

// call calls a method of the child's service. It ends early if ctx or the child does.
func (c *child) call(ctx context.Context, method string, args, reply any) error {
	call := c.client.Go(c.role+"."+method, args, reply, make(chan *rpc.Call, 1))
	var err error
	select {
	case <-call.Done:
		err = call.Error
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s of the %s: %w", method, c.role, err)
	}
	return nil
}

// stop lets the child end and waits for it.
func (c *child) stop() error {
	return errors.Join(c.client.Close(), c.cmd.Wait())
}

// None is no argument or no result.
type None struct{}
