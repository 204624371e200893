package agentjob

import (
	"strings"
	"sync"
	"time"
)

// Progress tells the customer how far the work is: a short message and, if known,
// a percentage from 0 to 100 (nil: not known; one out of range is left out). It never blocks and may be called as often
// as wanted, from any goroutine: the newest call is sent, at most one in
// three seconds. It does not extend the deadline. After the handler has
// returned it does nothing.
func (t *Task) Progress(message string, percent *int) {
	if t.progress == nil {
		return
	}
	if percent != nil && (*percent < 0 || *percent > 100) {
		percent = nil
	}
	t.progress.offer(ProgressReport{Message: strings.ToValidUTF8(message, "\uFFFD"), Percent: percent})
}

// A progressBox holds the newest report until it may be sent.
type progressBox struct {
	send func(ProgressReport)

	mu      sync.Mutex
	newest  *ProgressReport
	seq     int64 // of the last report sent
	sending bool  // a sender goroutine runs
	closed  chan struct{}
	senders sync.WaitGroup
}

// newProgressBox returns a box whose reports are numbered from after on.
func newProgressBox(after int64, send func(ProgressReport)) *progressBox {
	return &progressBox{send: send, seq: after, closed: make(chan struct{})}
}

// offer replaces the newest report. The first starts the sender.
func (b *progressBox) offer(p ProgressReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.closed:
		return
	default:
	}
	if p.Percent != nil {
		p.Percent = new(*p.Percent)
	}
	b.newest = &p
	if !b.sending {
		b.sending = true
		b.senders.Go(b.run)
	}
}

// run sends the newest report every three seconds for as long as there are new ones.
func (b *progressBox) run() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-b.closed:
			return
		}
		p, ok := b.take()
		if !ok {
			return
		}
		b.send(p) // a report that is lost is followed by a newer one: no retry
		pause.Reset(progressInterval)
	}
}

// take returns the newest report with its number, or ends the sender.
func (b *progressBox) take() (p ProgressReport, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.newest == nil {
		b.sending = false
		return p, false
	}
	p, b.newest = *b.newest, nil
	b.seq++
	p.Seq = b.seq
	return p, true
}

// close drops what was not sent and waits for the sender.
func (b *progressBox) close() {
	b.mu.Lock()
	close(b.closed)
	b.mu.Unlock()
	b.senders.Wait()
}
