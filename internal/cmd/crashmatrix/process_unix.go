//go:build unix

package main

import (
	"os"
	"syscall"
)

// killedCode is what os.ProcessState.ExitCode returns for a killed process.
const killedCode = -1

const canSuspend = true

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func wake(p *os.Process) error    { return p.Signal(syscall.SIGCONT) }
