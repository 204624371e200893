//go:build !linux

package main

import (
	"errors"
	"time"
)

func privateMemory() (int64, error) { return 0, errors.ErrUnsupported }

func processorTime() (time.Duration, error) { return 0, errors.ErrUnsupported }

func fileSystem(string) string { return "unknown" }
