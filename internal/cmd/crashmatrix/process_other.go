//go:build !unix

package main

import (
	"errors"
	"os"
)

// killedCode is what os.ProcessState.ExitCode returns for a killed process.
const killedCode = 1

// canSuspend: rows that need it are left out, and that is told.
const canSuspend = false

func suspend(*os.Process) error { return errors.ErrUnsupported }
func wake(*os.Process) error    { return errors.ErrUnsupported }
