package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What the parent asks of the platform.

// URL tells where the platform is.
func (p *Platform) URL(_ None, url *string) error {
	*url = p.url
	return nil
}

// Hold makes polls without a task end after this time.
func (p *Platform) Hold(d time.Duration, _ *None) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = d
	return nil
}

// AwaitHeld returns when so many polls wait or, for 0, when none does.
func (p *Platform) AwaitHeld(n int, _ *None) error {
	if err := p.await(p.parent, &p.changed, func() bool { return p.held >= n && (n > 0 || p.held == 0) }); err != nil {
		return err
	}
	p.mu.Unlock()
	return nil
}

// AwaitEmpty returns when so many polls were answered without a task since the last Prepare.
func (p *Platform) AwaitEmpty(n int, _ *None) error {
	if err := p.await(p.parent, &p.changed, func() bool { return p.empty >= n }); err != nil {
		return err
	}
	p.mu.Unlock()
	return nil
}

// Empty tells how many they are now.
func (p *Platform) Empty(_ None, n *int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n = p.empty
	return nil
}

// A Batch is what to hand out.
type Batch struct {
	Tasks    int
	Messages int  // in each of their conversations
	Claimed  bool // they were handed out long ago: only their replies are to come
}

// Prepare replaces the tasks by new ones and returns their batch's number.
func (p *Platform) Prepare(b Batch, number *int) error {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	conversation := make([]message, b.Messages)
	for i := range conversation {
		conversation[i] = message{[]string{"user", "assistant"}[i%2], fmt.Sprintf("Message %d of a conversation that goes on and on, as they do, until all is said.", i)}
	}
	text, err := json.Marshal(conversation)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch++
	p.messages, p.tasks = text, make([]job, b.Tasks)
	p.next, p.open, p.wrong, p.empty, p.beat = 0, b.Tasks, "", 0, time.Time{}
	if b.Claimed {
		p.next = b.Tasks
	}
	ring(&p.tasked)
	*number = p.batch
	return nil
}

// Outcome is how a batch went.
type Outcome struct {
	First, Last time.Time     // the first claim, zero if there was none, and the last reply accepted
	P50, P99    time.Duration // from a claim to its accepted reply
}

// AwaitReplies returns when every task of the batch has its reply. More than one, or one that
// was not asked for, is an error.
func (p *Platform) AwaitReplies(_ None, out *Outcome) error {
	if err := p.await(p.parent, &p.changed, func() bool { return p.open == 0 || p.wrong != "" }); err != nil {
		return err
	}
	defer p.mu.Unlock()
	switch {
	case p.wrong != "":
		return errors.New("the platform got " + p.wrong)
	case len(p.tasks) == 0:
		return errors.New("the platform has no tasks")
	}
	var took []time.Duration
	for i, j := range p.tasks {
		if i == 0 || j.claimed.Before(out.First) {
			out.First = j.claimed
		}
		if j.accepted.After(out.Last) {
			out.Last = j.accepted
		}
		took = append(took, j.accepted.Sub(j.claimed))
	}
	slices.Sort(took)
	out.P50, out.P99 = took[len(took)/2], took[len(took)*99/100]
	return nil
}

// AwaitBeat returns when the first heartbeat since the last Prepare came.
func (p *Platform) AwaitBeat(_ None, at *time.Time) error {
	if err := p.await(p.parent, &p.changed, func() bool { return !p.beat.IsZero() }); err != nil {
		return err
	}
	defer p.mu.Unlock()
	*at = p.beat
	return nil
}
