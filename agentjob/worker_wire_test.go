package agentjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

func TestOddTasks(t *testing.T) {
	ids := []string{"a/b", "../../etc/passwd", "nul\x00byte", "per%2Fcent", "q?x=1#y", "ünï", strings.Repeat("x", 400)}
	for _, id := range ids {
		t.Run(fmt.Sprintf("id %.20q", id), func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.run(echo)
				m := w.sendMessage(agentjobtest.MessageOptions{ID: id, Text: "Hello"})
				require.Equal(t, "You said: Hello", w.reply(m))
				require.NoError(t, r.end())
				require.Equal(t, agentjob.EndDelivered, w.record(id).End)
			})
		})
	}
	for name, c := range map[string]struct{ id, task, reply string }{
		"unknown fields":       {"t1", `{"id":"t1","new":{"a":[1]},"messages":[{"role":"user","content":"Hello","mood":3}]}`, "You said: Hello"},
		"wrong-typed chat id":  {"t2", `{"id":"t2","chat_id":7,"amount_usdc":{"x":1},"is_first_chat":"maybe","messages":[{"role":"user","content":"Hello"}]}`, "You said: Hello"},
		"a message without it": {"t3", `{"id":"t3","messages":[{"role":"assistant"},{"role":"user","content":"Hello"}]}`, "You said: Hello"},
		"no messages":          {"t4", `{"id":"t4"}`, ""},
		"empty messages":       {"t5", `{"id":"t5","messages":[]}`, ""},
		"content of odd type":  {"t6", `{"id":"t6","messages":[{"role":"user","content":42}]}`, ""},
		"no id":                {"t7", `{"messages":[{"role":"user","content":"Hello"}]}`, ""},
		"id dot dot":           {"..", `{"id":"..","messages":[{"role":"user","content":"Hello"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				h := counting(echo)
				r := w.run(h.handle)
				m := w.sendMessage(agentjobtest.MessageOptions{ID: c.id, Task: json.RawMessage(c.task), Text: "Hello"})
				if c.reply != "" {
					require.Equal(t, c.reply, w.reply(m))
				} else {
					w.pass(time.Minute)
					require.Zero(t, h.count(c.id), "there is nothing to answer")
					require.NotEmpty(t, append(w.seen(agentjob.EventEnded), w.seen(agentjob.EventPollFail)...), "and it is reported")
				}
				require.Equal(t, "You said: next", w.reply(w.send("next")), "the worker goes on")
				require.NoError(t, r.end())
			})
		})
	}
}

func TestNoSecretOrChatTextInOutput(t *testing.T) {
	inWorld(t, func(w *world) {
		const canary = "CANARY-chat-text-of-a-customer"
		w.srv.Configure(func(s *agentjobtest.Settings) { s.MaxConcurrentChats = 100 })
		for _, route := range []agentjobtest.Route{agentjobtest.RouteRespond, agentjobtest.RoutePoll, agentjobtest.RouteHeartbeat, agentjobtest.RouteProgress} {
			for _, contentType := range []string{"application/json", "text/plain", "text/html"} {
				w.srv.Inject(agentjobtest.Fault{
					Route: route, Status: 500, Times: 2, ContentType: contentType,
					Body: `{"error":"no key ` + w.agent.Key + ` for ` + canary + `"}`,
				})
			}
		}
		r := w.run(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			task.Progress(canary, nil)
			switch task.LastUserText() {
			case canary + "error":
				return nil, fmt.Errorf("model said %s with %s", canary, w.agent.Key)
			case canary + "panic":
				panic(canary + w.agent.Key)
			case canary + "unavailable":
				return nil, agentjob.Unavailable(errors.New(canary), time.Second)
			}
			return agentjob.Text(canary), nil
		}, func(c *agentjob.Config) { c.Concurrency = 2 })
		for _, kind := range []string{"error", "panic", "unavailable", "", "", ""} {
			w.send(canary + kind)
		}
		w.pass(20 * time.Minute)
		require.NoError(t, r.end())
		var own strings.Builder
		for _, e := range w.seen(agentjob.EventDeliveryRetry) {
			own.WriteString(e.Err.Error())
		}
		for _, rec := range w.store.Records(w.agent.ID) {
			own.WriteString(rec.Reason)
		}
		require.Contains(t, w.log.String(), "delivery_retry", "the log is on")
		for _, out := range []string{w.log.String(), own.String()} {
			require.NotContains(t, out, canary)
			require.NotContains(t, out, w.agent.Key)
		}
	})
}
