package agentjob_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A trial is a schedule that is being run: the platform, the store, the worker's lives one after the
// other, and what is known of every task. Its hooks see each write, request, call and event.
type trial struct {
	plan     schedule
	sabotage sabotage
	srv      *agentjobtest.Server
	agent    *agentjobtest.Agent
	store    *agentjobtest.Store

	mu      sync.Mutex
	broken  []string // promises, in the order in which they were seen to be broken
	errands []*errand
	byID    map[string]*errand
	lives   []*life
	current *life // nil between two lives
	over    bool  // no more lives

	calls sync.WaitGroup // of handlers

	clock   atomic.Int64 // how far the platform's is ahead of ours; read under its lock
	trouble [3]trouble   // of the store, Ready and Acquire
	traps   []step       // that have not sprung
	faults  []*agentjobtest.Injection
}

// What can be in trouble.
const (
	storeTrouble = iota
	readyTrouble
	acquireTrouble
)

// A trouble is how something goes wrong for a while.
type trouble struct {
	how   string // "" while it is well
	state agentjob.State
	over  chan struct{} // closed when it is well again
}

// An errand is a task from its message to its end.
type errand struct {
	number    int
	id        string
	message   *agentjobtest.Message
	step      step
	cancelled bool

	// What the store took.
	record  agentjob.Record // the latest; State "" for none
	holders []*life         // that wrote it while it was open
	ender   *life           // that ended it
	reply   []byte          // the bytes of the first saved record

	runs     int   // of the handler, not of Resume
	resumed  int   // of the latest run of Resume
	arrived  *life // that read it whole in a poll's answer
	refusals []int // statuses of refusals of the reply, read whole
}

// trialLimits: what the model calls too long or too much.
const (
	restartAfter    = 5 * time.Second
	faultsLast      = 5 * time.Minute  // of the requests that they met: the longest delay and poll
	stopTakes       = 20 * time.Second // a stuck handler's grace and what is left to write
	drainTakes      = 30*time.Second + stopTakes
	requestsAtFirst = 200
	requestsAMinute = 250
	maxBroken       = 20
)

// run runs a schedule in a bubble of its own and returns the broken promises.
func (s schedule) run(t *testing.T, by sabotage) (broken []string) {
	synctest.Test(t, func(t *testing.T) {
		x := &trial{plan: s, sabotage: by, byID: map[string]*errand{}, store: agentjobtest.NewStore()}
		settings := agentjobtest.Settings{
			Now:                func() time.Time { return time.Now().Add(time.Duration(x.clock.Load())) },
			MaxConcurrentChats: s.Chats, Deadline: time.Duration(s.Deadline), NoResponseIdempotency: s.Forgetful,
			Shape: s.Shape, Empty: s.Empty, CamelCase: s.CamelCase, DeadlineInTask: s.DeadlineInTask,
		}
		if by.platform != nil {
			by.platform(&settings)
		}
		x.srv = agentjobtest.NewPipeServer(settings)
		defer x.srv.Close()
		x.agent = x.srv.AddAgent("Test agent")
		x.begin()
		start := time.Now()
		for _, st := range s.Steps {
			<-time.After(time.Until(start.Add(time.Duration(st.At))))
			synctest.Wait()
			x.do(st)
		}
		synctest.Wait()
		x.settle()
		x.calls.Wait() // handlers that ignored their context; the bubble fails if anything else is left
		for _, l := range x.lives {
			<-l.done
		}
		synctest.Wait()
		x.checkAll()
		broken = x.broken
	})
	return broken
}

// breaks notes a broken promise. x.mu is held.
func (x *trial) breaks(promise, format string, args ...any) {
	if len(x.broken) < maxBroken {
		x.broken = append(x.broken, promise+": "+fmt.Sprintf(format, args...))
	}
}

// do makes one step happen.
func (x *trial) do(s step) {
	switch s.Do {
	case "send":
		x.send(s)
	case "cancel":
		if e := x.errand(s.Task); e != nil {
			x.mu.Lock()
			e.cancelled = true
			x.mu.Unlock()
			e.message.Cancel()
		}
	case "again":
		if e := x.errand(s.Task); e != nil {
			x.srv.HandOutAgain(e.message.ID)
		}
	case "fault":
		x.faults = append(x.faults, x.srv.Inject(agentjobtest.Fault{
			Route: s.Route, Kind: s.Kind, Times: s.Times, Skip: s.Skip, Delay: time.Duration(s.Delay),
			Status: s.Status, Body: s.Body, RetryAfter: s.RetryAfter, ContentType: contentType(s.Body),
		}))
	case "jump":
		x.clock.Add(int64(s.For))
		x.srv.Configure(func(*agentjobtest.Settings) {}) // whoever waits looks at the clock
	case "store":
		x.begets(storeTrouble, s)
	case "ready":
		x.begets(readyTrouble, s)
	case "acquire":
		x.begets(acquireTrouble, s)
	case "crash at write", "crash at request":
		x.mu.Lock()
		x.traps = append(x.traps, s)
		x.mu.Unlock()
	default:
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.current != nil {
			x.current.end(s.Do)
		}
	}
}

func contentType(body string) string {
	if strings.HasPrefix(body, "<") {
		return "text/html"
	}
	return ""
}

// errand returns one of the tasks sent so far, nil if there is none.
func (x *trial) errand(n int) *errand {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.errands) == 0 {
		return nil
	}
	return x.errands[n%len(x.errands)]
}

func (x *trial) send(s step) *errand {
	x.mu.Lock()
	e := &errand{number: len(x.errands), step: s}
	e.id = fmt.Sprintf("task-%d.", e.number) // no id is part of another
	x.errands = append(x.errands, e)
	x.byID[e.id] = e
	x.mu.Unlock()
	text := "Hello"
	if s.How == "unasked" {
		text = " "
	}
	m, err := x.srv.User("alice").Chat(x.agent).SendMessage(agentjobtest.MessageOptions{ID: e.id, Text: text, Queue: true})
	if err != nil {
		panic(err) // an id that is new and a text
	}
	e.message = m
	return e
}

// begets begins a trouble, which ends after its time or with the next one.
func (x *trial) begets(what int, s step) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.heal(what)
	well := make(chan struct{})
	x.trouble[what] = trouble{how: s.How, state: s.State, over: well}
	time.AfterFunc(time.Duration(s.For), func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.trouble[what].over == well {
			x.heal(what)
		}
	})
}

// heal ends a trouble. x.mu is held.
func (x *trial) heal(what int) {
	if x.trouble[what].over != nil {
		close(x.trouble[what].over)
	}
	x.trouble[what] = trouble{}
}

// settle ends all faults and lets time pass until everything is over, or should be.
func (x *trial) settle() {
	for _, f := range x.faults {
		f.Clear()
	}
	x.mu.Lock()
	for what := range x.trouble {
		x.heal(what)
	}
	x.traps = nil
	limit := 4*time.Hour + time.Duration(len(x.errands)+1)*time.Duration(x.plan.Deadline)
	for _, s := range x.plan.Steps {
		if s.Do == "jump" {
			limit += max(time.Duration(s.For), -time.Duration(s.For))
		}
	}
	x.mu.Unlock()
	<-time.After(faultsLast)
	synctest.Wait()
	// One may be lost with a poll that is given up while earlier tasks end, but not each.
	var last *errand
	for tries := 0; tries < 3 && !x.arrived(last); tries++ {
		last = x.send(step{How: "answer"})
		for waited := time.Duration(0); !x.settled() && waited < limit; waited += time.Minute {
			<-time.After(time.Minute)
			synctest.Wait()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if last.record.End != agentjob.EndDelivered {
		x.breaks(goesOn, "a message sent when all was well again is %q here and %s there", last.record.State, last.message.Status())
	}
	x.over = true
	if l := x.current; l != nil {
		l.end("drain")
		asked := time.Now()
		x.mu.Unlock()
		select {
		case <-l.done:
		case <-time.After(drainTakes):
			l.worker.Stop()
			<-l.done // which says that it was late
		}
		synctest.Wait()
		x.mu.Lock()
		if x.settledLocked() && (l.err != nil || time.Since(asked) > time.Second) {
			x.breaks(endsInTime, "with nothing to do the drain took %v and returned: %v", time.Since(asked), l.err)
		}
	} else {
		x.breaks(goesOn, "there is no worker")
	}
}

// arrived reports whether there is a record of a task.
func (x *trial) arrived(e *errand) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return e != nil && e.record.State != ""
}

func (x *trial) settled() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.settledLocked()
}

func (x *trial) settledLocked() bool {
	for _, e := range x.errands {
		if e.message.Status() == agentjobtest.StatusQueued || e.record.State != agentjob.StateEnded && e.record.State != "" {
			return false
		}
		if e.record.State == "" && e.message.Status() == agentjobtest.StatusProcessing {
			return false // lost on its way, or about to arrive
		}
	}
	return x.current != nil
}
