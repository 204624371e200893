package main

import (
	"fmt"
	"runtime"
	"time"
)

// A machine is where and when rows were measured: they say nothing without it.
type machine struct {
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"`
	Disk  string `json:"disk"` // kind of the file system below the stores
	Date  string `json:"date"`
}

func thisMachine(dir string) machine {
	return machine{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(),
		Disk: fileSystem(dir), Date: time.Now().Format(time.DateOnly),
	}
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %s/%s, %d cores, file system %s, %s", m.Go, m.OS, m.Arch, m.Cores, m.Disk, m.Date)
}
