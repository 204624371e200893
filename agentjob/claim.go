package agentjob

import (
	"context"
	"time"
)

// minPollRound paces polls that come back empty at once although they were to
// be held: one a second, as the platform itself looks.
const minPollRound = time.Second

// claim polls while the gate is open, one poll at a time, and starts what is
// handed out. It returns at drain.
func (r *run) claim() {
	for failures := 0; ; {
		open, ok := r.gate.wait()
		if !ok {
			return
		}
		wait := r.claimOne(open, &failures)
		if wait > 0 {
			// A pause for a failing platform outlasts a change of the gate.
			_ = sleep(r.claiming, wait)
		}
	}
}

// claimOne takes capacity, polls once, and starts the task if there is one. It
// returns how long to pause before the next poll.
func (r *run) claimOne(open context.Context, failures *int) (pause time.Duration) {
	select {
	case r.slots <- struct{}{}:
	case <-open.Done():
		return 0
	}
	free := func() { <-r.slots }
	release, err := r.capacity(open)
	if err != nil {
		free()
		if open.Err() != nil {
			return 0
		}
		*failures++
		r.status.failed(err)
		return backoff(*failures)
	}
	done := func() { release(); free() }
	if !r.gate.isOpen() { // any more
		done()
		return 0
	}

	start := time.Now()
	task, err := r.client.PollTask(open, Poll{Wait: r.cfg.PollWait, AttachmentTypes: r.cfg.AttachmentTypes})
	switch {
	case err != nil && open.Err() != nil:
		done()
		return 0
	case err != nil:
		done()
		*failures++
		r.platformFailed(EventPollFail, err)
		return retryDelay(*failures, err)
	}
	r.status.contact()
	switch {
	case task == nil:
		done()
		*failures = 0
		return max(0, min(minPollRound, r.cfg.PollWait/2)-time.Since(start))
	case !r.ledger.claim(task.ID):
		done()
		*failures++
		r.emit(Event{Kind: EventDuplicate, TaskID: task.ID})
		return backoff(*failures)
	}
	r.working.Go(func() {
		defer done()
		r.work(task, time.Now())
	})
	if unreadable(task) { // ends at once: more of the kind must not become a hot loop
		*failures++
		return backoff(*failures)
	}
	*failures = 0
	return 0
}

// capacity calls Config.Acquire, if there is one.
func (r *run) capacity(ctx context.Context) (release func(), err error) {
	if r.cfg.Acquire == nil {
		return func() {}, nil
	}
	theirs, err := call(ctx, r.cfg.StuckGrace, r.cfg.Acquire)
	switch {
	case err == errStuck:
		r.stuck("Acquire", "")
		return nil, err
	case err != nil:
		return nil, err
	case theirs == nil:
		return func() {}, nil
	}
	return func() { r.release(theirs) }, nil
}

// release gives capacity back. It has the grace to do so.
func (r *run) release(release func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.tasks), r.cfg.StuckGrace)
	defer cancel()
	_, err := call(ctx, 0, func(context.Context) (struct{}, error) { release(); return struct{}{}, nil })
	switch {
	case err == errStuck:
		r.stuck("the release function of Acquire", "")
	case err != nil:
		r.status.failed(err)
		r.emit(Event{Kind: EventPanic, Err: err})
	}
}
