package agentjob

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// maxDeliveries is how many replies are delivered at once.
const maxDeliveries = 8

// A parcel is a saved reply in the outbox.
type parcel struct {
	rec      Record
	attempts int
	due      time.Time
	urgent   bool // saved by this run and not tried yet, or asked for: no pause holds it up
}

// An outbox delivers saved replies until each is settled: soonest due first, with
// a back-off for each reply and, while nothing works, one for all of them.
// Goroutines exist only while there is something to deliver.
type outbox struct {
	ctx     context.Context
	deliver func(context.Context, *parcel) delivery
	size    func(n int) // told of each change of the number of open parcels, under the lock

	mu                sync.Mutex
	queue             parcelHeap
	open              int // in the queue or being delivered
	couriers, waiting int
	streak            int       // failures since anything worked
	pause             time.Time // nothing but urgent parcels before
	pushed            chan struct{}
	running           sync.WaitGroup
}

// A delivery is how an attempt went.
type delivery struct {
	settled bool          // nothing is left to do
	worked  bool          // the platform answered sensibly
	retry   time.Duration // of one that is not settled
}

func newOutbox(ctx context.Context, deliver func(context.Context, *parcel) delivery, size func(int)) *outbox {
	return &outbox{ctx: ctx, deliver: deliver, size: size, pushed: make(chan struct{}, 1)}
}

// push adds a saved reply.
func (o *outbox) push(rec Record, urgent bool) {
	o.mu.Lock()
	heap.Push(&o.queue, &parcel{rec: rec, due: time.Now(), urgent: urgent})
	o.open++
	o.size(o.open)
	if o.couriers-o.waiting < maxDeliveries && o.ctx.Err() == nil {
		if o.waiting > 0 {
			o.poke()
		} else {
			o.couriers++
			o.running.Go(o.run)
		}
	}
	o.mu.Unlock()
}

// hasten makes a reply that waits due now. It reports whether it found one.
func (o *outbox) hasten(taskID string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.find(taskID)
	if i < 0 {
		return false
	}
	o.queue[i].due, o.queue[i].urgent = time.Now(), true
	heap.Fix(&o.queue, i)
	if o.waiting > 0 {
		o.poke()
	}
	return true
}

// take removes a reply that waits. One that is being delivered is not in the queue.
func (o *outbox) take(taskID string) (rec Record, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.find(taskID)
	if i < 0 {
		return Record{}, false
	}
	p := heap.Remove(&o.queue, i).(*parcel)
	o.open--
	o.size(o.open)
	if o.waiting > 0 {
		o.poke() // it may have waited for this one
	}
	return p.rec, true
}

func (o *outbox) find(taskID string) int {
	return slices.IndexFunc(o.queue, func(p *parcel) bool { return p.rec.TaskID == taskID })
}

func (o *outbox) poke() {
	select {
	case o.pushed <- struct{}{}:
	default:
	}
}

// wait returns when no goroutine of the outbox runs: when it is empty or its
// context has ended. Nothing may be pushed any more.
func (o *outbox) wait() { o.running.Wait() }

// run delivers what is due. One goroutine waits for what is due later; others end
// when nothing is due.
func (o *outbox) run() {
	for {
		p, wait := o.next()
		switch {
		case p != nil:
			o.settle(p, o.deliver(o.ctx, p))
		case wait < 0:
			return
		default:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-o.pushed:
			case <-o.ctx.Done():
			}
			timer.Stop()
			o.mu.Lock()
			o.waiting--
			o.mu.Unlock()
		}
	}
}

// next returns the parcel to deliver now, or how long to wait, or a negative
// time if the caller should end.
func (o *outbox) next() (*parcel, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil || len(o.queue) == 0 {
		o.couriers--
		return nil, -1
	}
	p := o.queue[0]
	due := p.due
	if !p.urgent && o.pause.After(due) {
		due = o.pause
	}
	wait := time.Until(due)
	if wait <= 0 {
		heap.Pop(&o.queue)
		o.help()
		return p, 0
	}
	if o.waiting > 0 {
		o.couriers--
		return nil, -1
	}
	o.waiting++
	return nil, wait
}

// help starts another courier while more parcels may be due. After a failure only
// urgent ones get one, until something works again.
func (o *outbox) help() {
	if len(o.queue) > 0 && (o.streak == 0 || o.queue[0].urgent) && o.waiting == 0 && o.couriers < maxDeliveries {
		o.couriers++
		o.running.Go(o.run)
	}
}

// settle notes how an attempt went, and queues the parcel again if need be.
func (o *outbox) settle(p *parcel, d delivery) {
	o.mu.Lock()
	switch {
	case d.worked:
		o.streak, o.pause = 0, time.Time{}
	case !d.settled && !time.Now().Before(o.pause): // once for all that failed together
		o.streak++
		o.pause = time.Now().Add(backoff(o.streak))
	}
	if d.settled {
		o.open--
	} else {
		p.urgent = false
		p.due = time.Now().Add(d.retry)
		heap.Push(&o.queue, p)
	}
	if o.waiting > 0 {
		o.poke() // what it waits for may be due earlier now
	}
	o.size(o.open)
	o.mu.Unlock()
}

// A parcelHeap orders parcels by when they are due, urgent ones first.
type parcelHeap []*parcel

func (h parcelHeap) Len() int { return len(h) }
func (h parcelHeap) Less(i, j int) bool {
	if h[i].urgent != h[j].urgent {
		return h[i].urgent
	}
	return h[i].due.Before(h[j].due)
}
func (h parcelHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *parcelHeap) Push(x any)   { *h = append(*h, x.(*parcel)) }
func (h *parcelHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return p
}
