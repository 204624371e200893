package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// couriers is how many replies a worker delivers at once.
const couriers = 8

// saved shows how fast a worker delivers what an earlier one left, from the call of Run to
// the last accepted reply.
var saved = figure{
	name: "saved replies",
	claims: []claim{
		{
			name: "drain/10000", unit: "replies/s", compared: fmt.Sprintf("bare loop of %d that posts them, from memory", couriers), goal: goal{limit: 0.8},
			value: of("10000", "rate"), ratio: beside(of("10000", "rate"), of("posted", "rate")),
		},
		{
			name: "drain/10000-recorded", unit: "replies/s", compared: "the same loop, which reads them and records their ends", goal: goal{limit: 0.8},
			value: of("10000", "rate"), ratio: beside(of("10000", "rate"), of("recorded", "rate")),
		},
		{
			name: "growth/saved", unit: "us/reply", compared: "the lesser of 1,000 and 3,000 replies; value at 10,000", goal: linear,
			value: of("10000", "each"), ratio: beside(of("10000", "each"), least(of("1000", "each"), of("3000", "each"))),
		},
	},
	sides: []string{"posted", "10000", "recorded", "1000", "3000"},
	set: func(ctx context.Context, b *bench) (map[string]measure, func() error, error) {
		s, err := newSite(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		return map[string]measure{
			"posted":   s.postAll(10_000),
			"recorded": s.recordAll(10_000),
			"1000":     s.deliverAll(1000),
			"3000":     s.deliverAll(3000),
			"10000":    s.deliverAll(10_000),
		}, s.platform.stop, nil
	},
}

// paced is what n replies between two moments say.
func paced(n int, began, ended time.Time) sample {
	took := ended.Sub(began).Seconds()
	return sample{"rate": float64(n) / took, "each": 1e6 * took / float64(n)}
}

func replyBody() ([]byte, error) { return json.Marshal(map[string]string{"text": replyText}) }

// postAll posts n replies, with nothing to read or to write beside.
func (s *site) postAll(n int) measure {
	return func(ctx context.Context) (sample, error) {
		batch, err := s.prepare(ctx, Batch{Tasks: n, Claimed: true})
		if err != nil {
			return nil, err
		}
		body, err := replyBody()
		if err != nil {
			return nil, err
		}
		t := transport()
		defer t.CloseIdleConnections()
		plain := bare{&http.Client{Transport: t}, s.url, provider}
		began := time.Now()
		err = together(couriers, func(i int) error {
			for ; i < n; i += couriers {
				if err := plain.respond(ctx, taskID(batch, i), body); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		o, err := s.awaitReplies(ctx)
		return paced(n, began, o.Last), err
	}
}

// filled gives the platform n tasks that were handed out, and a new store their replies.
func (s *site) filled(ctx context.Context, n int) (*shelf, error) {
	batch, err := s.prepare(ctx, Batch{Tasks: n, Claimed: true})
	if err != nil {
		return nil, err
	}
	store, err := s.newShelf()
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, store, batch, n); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// deliverAll starts a worker on a store with n saved replies.
func (s *site) deliverAll(n int) measure {
	return func(ctx context.Context) (out sample, err error) {
		store, err := s.filled(ctx, n)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		began := time.Now()
		p, err := s.startWorker(store, 1, noop)
		if err != nil {
			return nil, err
		}
		o, err := s.awaitReplies(ctx)
		if err = errors.Join(err, p.stop()); err != nil {
			return nil, err
		}
		return paced(n, began, o.Last), s.awaitHeld(ctx, 0)
	}
}

// recordAll reads n saved replies, posts them and records each end, as late as the worker may.
func (s *site) recordAll(n int) measure {
	return func(ctx context.Context) (out sample, err error) {
		store, err := s.filled(ctx, n)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		t := transport()
		defer t.CloseIdleConnections()
		plain := bare{&http.Client{Transport: t}, s.url, provider}
		began := time.Now()
		lease, err := store.Acquire(ctx, provider)
		if err != nil {
			return nil, err
		}
		var all []agentjob.Record
		for rec, err := range lease.Records(ctx) {
			if err != nil {
				return nil, err
			}
			all = append(all, rec)
		}
		err = together(couriers, func(i int) error {
			for ; i < len(all); i += couriers {
				rec := all[i]
				if err := plain.respond(ctx, rec.TaskID, rec.Content.Response); err != nil {
					return err
				}
				rec.State, rec.EndedAt, rec.End, rec.Content = agentjob.StateEnded, time.Now(), agentjob.EndDelivered, agentjob.Content{}
				if err := lease.Put(ctx, rec); err != nil {
					return err
				}
			}
			return nil
		})
		if err = errors.Join(err, lease.Close()); err != nil {
			return nil, err
		}
		o, err := s.awaitReplies(ctx)
		return paced(n, began, o.Last), err
	}
}

// fill puts n saved replies into a store, as a worker that was cut off would have.
func fill(ctx context.Context, store *shelf, batch, n int) (err error) {
	lease, err := store.Acquire(ctx, provider)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Close()) }()
	body, err := replyBody()
	if err != nil {
		return err
	}
	return together(writers, func(i int) error {
		for ; i < n; i += writers {
			now := time.Now()
			err := lease.Put(ctx, agentjob.Record{
				Provider: provider, TaskID: taskID(batch, i), ChatID: "chat", State: agentjob.StateSaved,
				ClaimedAt: now, SavedAt: now, Deadline: now.Add(30 * time.Minute), Content: agentjob.Content{Response: body},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
