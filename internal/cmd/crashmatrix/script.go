package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"
)

// An action is what happens to the provider's process at a moment.
type action string

const (
	die  action = "die"  // it sends SIGKILL to itself
	hold action = "hold" // what came so far waits for the parent's word; the rest of the process goes on
)

// A moment is a point of a task's life, as the steps of a [script] name it, at which something
// happens once. The zero moment never comes.
type moment struct {
	Name string
	Nth  int    // the nth time it comes; 0: the first
	Next string // another point that must have been passed too, if the two are reached side by side
	Do   action
}

// sway draws how long after its start a step is cut off: from 5 ms, which a durable write or a
// request to a neighbour seldom takes, down to a few microseconds, each order of magnitude as often.
func sway() time.Duration {
	return time.Duration(float64(5*time.Millisecond) * math.Exp2(-10*rand.Float64()))
}

// A script lets the moment come. Each step of the provider tells it where it is, and it tells
// the parent: a line and a write each, so that nothing is lost when the process is killed.
type script struct {
	moment moment
	goes   chan struct{} // receives the parent's word
	sways  time.Duration // a moment "during" comes so long after the step's start

	mu     sync.Mutex
	out    io.Writer
	count  map[string]int
	passed map[string]chan struct{}
}

func newScript(m moment, sways time.Duration, out io.Writer) *script {
	return &script{moment: m, goes: make(chan struct{}, 1), sways: sways, out: out, count: map[string]int{}, passed: map[string]chan struct{}{}}
}

// say tells the parent one thing.
func (s *script) say(verb, subject, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := make([]string, 0, 3)
	for _, part := range []string{verb, subject, detail} {
		line = append(line, strings.Join(strings.Fields(part), " "))
	}
	if _, err := fmt.Fprintln(s.out, strings.Join(line, "\t")); err != nil {
		os.Exit(exitOrphan) // nobody is left who would judge
	}
}

// reach is called at every point.
func (s *script) reach(name string) {
	s.say("moment", name, "")
	if s.arrive(name) {
		s.come()
	}
}

// arrive counts, and reports whether this is the moment.
func (s *script) arrive(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[name]++
	if s.count[name] == 1 {
		close(s.gate(name))
	}
	return name == s.moment.Name && s.count[name] == max(s.moment.Nth, 1)
}

// gate returns the channel that closes when a point is passed. The lock is held.
func (s *script) gate(name string) chan struct{} {
	if s.passed[name] == nil {
		s.passed[name] = make(chan struct{})
	}
	return s.passed[name]
}

// past is the same for those who don't hold it.
func (s *script) past(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate(name)
}

func (s *script) come() {
	if s.moment.Next != "" {
		<-s.past(s.moment.Next)
	}
	s.say("at", s.moment.Name, "")
	if s.moment.Do == hold {
		<-s.goes
		return
	}
	s.die()
}

// die does not return.
func (s *script) die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		s.say("stopped", "", "it can't kill itself: "+err.Error())
		os.Exit(exitFailed)
	}
	select {} // the signal may take a moment to reach this thread
}

// step does one thing that may be cut off before, during and after it. What fails is not
// followed by its after.
func (s *script) step(name string, do func() error) error {
	s.reach("before " + name)
	cut := s.arrive("during " + name)
	if cut {
		s.say("at", "during "+name, "")
		time.AfterFunc(s.sways, s.die)
	}
	err := do()
	switch {
	case cut:
		select {} // nobody learns how it went
	case err != nil:
		s.reach("failed " + name)
	default:
		s.reach("after " + name)
	}
	return err
}
