package agentjob_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// through gives a worker a client whose answers pass through change.
func (w *world) through(change func(*http.Response)) func(*agentjob.Config) {
	next := w.srv.Client().Transport
	client, err := agentjob.NewClient(agentjob.ClientConfig{
		BaseURL: w.srv.URL, APIKey: secret.New(w.agent.Key),
		HTTPClient: &http.Client{Transport: tripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil {
				change(resp)
			}
			return resp, err
		})},
	})
	require.NoError(w, err)
	return func(c *agentjob.Config) { c.Client = client }
}

// conversation returns a task of so many turns, the last one the customer's.
func conversation(id string, turns int) json.RawMessage {
	type turn struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages []turn
	for i := range turns {
		messages = append(messages, turn{[]string{"user", "assistant"}[i%2], fmt.Sprint("turn ", i)})
	}
	task, err := json.Marshal(map[string]any{"id": id, "messages": messages})
	if err != nil {
		panic(err) // strings
	}
	return task
}

func TestConversationOfTenThousandMessagesIsSeenWholeAlsoWhenResumed(t *testing.T) {
	inWorld(t, func(w *world) {
		const turns = 10_001
		whole := func(task *agentjob.Task) {
			require.Len(w, task.Messages, turns)
			for i, m := range task.Messages {
				require.Equal(w, fmt.Sprint("turn ", i), m.Content)
			}
		}
		handler := func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			whole(task)
			return untilDone(ctx, task)
		}
		resume := func(c *agentjob.Config) {
			c.Resume = func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
				whole(task)
				return echo(ctx, task)
			}
		}
		r := w.run(handler, resume)
		m := w.sendMessage(agentjobtest.MessageOptions{ID: "long", Task: conversation("long", turns)})
		w.claimed(m)
		r.crash()
		r = w.run(handler, resume)
		require.Equal(t, "You said: turn 10000", w.reply(m))
		require.NoError(t, r.end())
		require.True(t, w.record(m.ID).Content.IsZero(), "the conversation is not kept")
	})
}

func TestMessageOfManyMegabytesIsAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		long := strings.Repeat("long ", 2<<20)
		var seen int
		r := w.run(func(_ context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			seen = len(task.LastUserText())
			return agentjob.Text(fmt.Sprint(seen)), nil
		}, func(c *agentjob.Config) { c.Resume = untilDone })
		require.Equal(t, fmt.Sprint(len(long)), w.reply(w.send(long)))
		require.NoError(t, r.end())
		require.Equal(t, len(long), seen)
	})
}

// A dripping body yields a byte at a time.
type dripping struct {
	io.ReadCloser
	ctx context.Context
	gap time.Duration
}

func (d dripping) Read(p []byte) (int, error) {
	select {
	case <-time.After(d.gap):
		return d.ReadCloser.Read(p[:min(1, len(p))])
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

// Answers that drip, of every route, cost time but nothing else: none holds the worker for ever.
func TestDrippingAnswers(t *testing.T) {
	for _, gap := range []time.Duration{50 * time.Millisecond, time.Second, time.Minute} {
		t.Run(gap.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
				var dry atomic.Bool
				drip := w.through(func(resp *http.Response) {
					if !dry.Load() {
						resp.Body = dripping{resp.Body, resp.Request.Context(), gap}
					}
				})
				h := counting(echo)
				r := w.run(h.handle, drip)
				early := w.send("Hello")
				w.pass(10 * time.Minute)
				dry.Store(true)
				late := w.send("Hello again")
				require.Equal(t, "You said: Hello again", w.reply(late))
				w.pass(10 * time.Minute)
				require.NoError(t, r.end())
				require.LessOrEqual(t, h.count(early.ID), 1)
				require.Equal(t, h.count(early.ID), early.Counts().Deliveries, "what was made is delivered, once")
				require.Less(t, len(w.srv.Requests()), 300)
			})
		})
	}
}

// Without a date that can be read, deadlines are taken as they are, and work goes on.
func TestDatesThatAreNone(t *testing.T) {
	for _, date := range []string{"", "yesterday", "2026-11-09T10:20:30Z", "Mon, 99 Foo 2026 99:99:99 GMT"} {
		t.Run(date, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.srv.Configure(func(s *agentjobtest.Settings) { s.DeadlineInTask = true; s.Deadline = 2 * time.Minute })
				r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
					require.WithinDuration(w, time.Now().Add(2*time.Minute), task.Deadline, time.Second)
					return echo(ctx, task)
				}, w.through(func(resp *http.Response) {
					resp.Header.Del("Date")
					if date != "" {
						resp.Header.Set("Date", date)
					}
				}))
				require.Equal(t, "You said: Hello", w.reply(w.send("Hello")))
				require.NoError(t, r.end())
			})
		})
	}
}

// The platform's clock may be anywhere, and may jump while a task is open: what it still accepts is
// delivered, what it has given up is reported, and the next task is served as ever.
func TestPlatformsClockJumps(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, jump := range []time.Duration{-30 * year, -26 * time.Hour, -10 * time.Minute, 10 * time.Minute, 26 * time.Hour, 30 * year} {
		for _, inTask := range []bool{false, true} {
			t.Run(fmt.Sprint(jump, inTask), func(t *testing.T) {
				inWorld(t, func(w *world) {
					var offset atomic.Int64
					jumps := func() { offset.Add(int64(jump)) }
					w.srv.Configure(func(s *agentjobtest.Settings) {
						s.DeadlineInTask = inTask
						s.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
					})
					h := counting(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
						if task.LastUserText() == "jump" {
							jumps()
						}
						select {
						case <-time.After(time.Minute):
							return echo(ctx, task)
						case <-ctx.Done():
							return nil, context.Cause(ctx)
						}
					})
					r := w.run(h.handle)
					during := w.send("jump")
					w.claimed(during)
					w.pass(2 * time.Minute)
					jumps() // and back, or further, while it polls
					offset.Add(-int64(jump))
					after := w.send("after")
					require.Equal(t, "You said: after", w.reply(after))
					require.NoError(t, r.end())
					require.Equal(t, 1, h.count(during.ID))
					switch end := w.record(during.ID).End; during.Status() {
					case agentjobtest.StatusCompleted:
						require.Equal(t, agentjob.EndDelivered, end)
						require.Equal(t, 1, during.Counts().Deliveries)
					default:
						require.Greater(t, jump, 29*time.Minute, "its time was not over")
						require.Equal(t, agentjob.EndExpired, end)
					}
				})
			})
		}
	}
}

// This machine's clock may have been set between two runs, so that records are dated anywhere.
func TestRecordsOfOtherTimes(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, shift := range []time.Duration{-20 * year, -48 * time.Hour, -time.Hour, time.Hour, 48 * time.Hour, 200 * year} {
		t.Run(shift.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
				h := counting(untilDone)
				outage := w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutBefore})
				r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
					if task.LastUserText() == "saved" {
						return echo(ctx, task)
					}
					return h.handle(ctx, task)
				}, func(c *agentjob.Config) { c.Concurrency = 2 })
				saved, claimed := w.send("saved"), w.send("claimed")
				w.pass(time.Minute)
				r.crash()
				outage.Clear()
				w.redate(shift)

				r = w.run(h.handle)
				require.Equal(t, "You said: saved", w.reply(saved), "the platform decides, whatever the dates say")
				synctest.Wait()
				require.Equal(t, agentjob.EndDelivered, w.record(saved.ID).End)
				require.Equal(t, agentjob.EndInterrupted, w.record(claimed.ID).End)
				for _, m := range []*agentjobtest.Message{saved, claimed} {
					w.srv.HandOutAgain(m.ID)
				}
				w.pass(5 * time.Minute)
				require.NoError(t, r.end())
				require.Equal(t, 1, h.count(claimed.ID), "it is not run again")
				require.Equal(t, 1, saved.Counts().Deliveries)
			})
		})
	}
}

// redate shifts the times of all records.
func (w *world) redate(shift time.Duration) {
	w.Helper()
	lease, err := w.store.Acquire(w.Context(), w.agent.ID)
	require.NoError(w, err)
	for _, rec := range w.store.Records(w.agent.ID) {
		for _, at := range []*time.Time{&rec.ClaimedAt, &rec.SavedAt, &rec.EndedAt, &rec.Deadline} {
			if !at.IsZero() {
				*at = at.Add(shift)
			}
		}
		require.NoError(w, lease.Put(w.Context(), rec))
	}
	require.NoError(w, lease.Close())
}

// A task that is handed out after its deadline has the handler's context done from the start; nothing
// is sent, and the next one is served.
func TestTaskClaimedAfterItsDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, deadline := range []string{"1970-01-01T00:00:01Z", "1999-12-31T23:00:00Z"} {
			id := "late " + deadline
			w.sendMessage(agentjobtest.MessageOptions{ID: id, Task: json.RawMessage(`{"id":"` + id + `","deadline":"` + deadline + `","messages":[{"role":"user","content":"x"}]}`)})
		}
		w.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteProgress, Status: 503}) // it does not tell better
		r := w.run(untilDone, func(c *agentjob.Config) { c.Concurrency = 2 })
		w.pass(time.Minute)
		require.NoError(t, r.end())
		require.Equal(t, []agentjob.End{agentjob.EndExpired, agentjob.EndExpired}, w.ends())
		require.Zero(t, w.requests(agentjobtest.RouteRespond))
	})
}

func TestDayAndYearChange(t *testing.T) {
	inWorld(t, func(w *world) {
		h := counting(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			w.pass(20 * time.Second)
			return echo(ctx, task)
		})
		for _, end := range []time.Time{
			time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(2000, 3, 1, 0, 0, 0, 0, time.UTC),
			time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC),
		} {
			w.pass(time.Until(end) - 10*time.Second)
			r := w.run(h.handle)
			m := w.send("over midnight")
			require.Equal(t, "You said: over midnight", w.reply(m))
			require.True(t, time.Now().After(end))
			require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Charges: 1}, m.Counts())
			require.NoError(t, r.end())
		}
		require.Len(t, w.store.Records(w.agent.ID), 1, "the earlier ones are forgotten")
	})
}

// The main job over TLS and HTTP/2, on real sockets, with a stream that is reset after a reply.
func TestOverHTTP2(t *testing.T) {
	platform := agentjobtest.NewServer(agentjobtest.Settings{})
	defer platform.Close()
	var others atomic.Int64
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			others.Add(1)
		}
		platform.ServeHTTP(w, r)
	}))
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	agent := platform.AddAgent("Test agent")
	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: front.URL, APIKey: secret.New(agent.Key), HTTPClient: front.Client()})
	require.NoError(t, err)
	store := agentjobtest.NewStore()
	ended := make(chan agentjob.Event, 10)
	worker, err := agentjob.NewWorker(agentjob.Config{
		Client: client, Store: store, Handler: agentjob.HandlerFunc(echo),
		Observe: func(e agentjob.Event) {
			if e.Kind == agentjob.EventEnded {
				ended <- e
			}
		},
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- worker.Run(context.Background()) }()
	require.NoError(t, platform.Await(t.Context(), agentjobtest.RouteHeartbeat, 1))
	cut := platform.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: agentjobtest.CutAfter, Times: 1})
	m, err := platform.User("alice").Chat(agent).Send("Hello")
	require.NoError(t, err)
	reply, err := m.WaitReply(t.Context())
	require.NoError(t, err)
	require.Equal(t, "You said: Hello", reply)
	require.Equal(t, agentjob.EndDelivered, (<-ended).End)
	worker.Drain()
	require.NoError(t, <-done)
	require.Equal(t, 1, cut.Count())
	require.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Repeats: 1, Charges: 1}, m.Counts())
	require.Zero(t, others.Load(), "requests that were not HTTP/2")
}
