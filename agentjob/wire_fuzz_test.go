package agentjob

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentjob/agentjob-go/internal/httpx"
)

var seeds = []string{
	``, `null`, `{}`, `[]`, `"x"`, `{"ok":false}`, `{"data":null}`, `{"task":null}`, `{"task":{}}`, "\xff", `<html>`,
	`{"task":{"id":"t-1","chat_id":"c","is_first_chat":true,"amount_usdc":"0.01","deadline":1794219630,"messages":[{"role":"user","content":[{"type":"text","text":"x"}],"attachments":[{"id":"a","size":"1"}]}]}}`,
	`{"ok":true,"data":{"task_id":12,"messages":null,"prompt":"x"}}`,
	`{"status":"cancelled","deadline":"2026-11-09T10:20:30Z","limits":{},"taskId":"t-1"}`,
	`{"data":{"next_heartbeat_in_seconds":45}}`, `{"profile":{"agent_id":"a"}}`, registered,
	`{"wallet":{"usdcBalance":null},"inquiringAccounts":3,"receipts":{"amount":"0.02","count":2,"weekStart":"2026-11-09T00:00:00Z"}}`,
	`{"ok":true,"data":{"enabled":true,"date":"2026-11-09","used":3,"limit":100,"remaining":97}}`,
	`{"attachment":{"id":"` + someFile + `","name":"a.mp4","contentType":"video/mp4","size":10,"durationSeconds":1.5},"ready":false,"uploadUrl":"https://h/f?sig=x"}`,
	`{"withdrawal":{"id":"w-1","status":"pending","amount":"0.001","to":"` + someAddress + `","txHash":null,"error":"x"}}`,
}

func fuzzBodies(f *testing.F, check func(t *testing.T, body []byte)) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(check)
}

func FuzzPoll(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		task, err := decodePoll(body)
		if err != nil || task == nil {
			if task != nil {
				t.Fatal("a task and an error")
			}
			return
		}
		if !usableTaskID(task.ID) {
			t.Fatalf("task with id %q", task.ID)
		}
		again, err := decodeStoredTask(task.Raw)
		if err != nil {
			t.Fatalf("what is stored can't be read: %v", err)
		}
		if !reflect.DeepEqual(task, again) {
			t.Fatalf("stored and read again:\n%+v\n%+v", task, again)
		}
	})
}

func FuzzProgress(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		if p, err := decodeProgress(body, "t-1"); err == nil && p.Deadline.Year() > 9999 {
			t.Fatalf("deadline %v", p.Deadline)
		}
	})
}

func FuzzHeartbeat(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		r, err := decodeHeartbeat(&httpx.Answer{Body: body, Header: http.Header{}})
		if err == nil && r.Next != 0 && (r.Next.Seconds() < 5 || r.Next.Seconds() > 60) {
			t.Fatalf("next %v", r.Next)
		}
	})
}

func FuzzProfile(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		if p, err := decodeProfile(body); (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
	})
}

func FuzzReceipt(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		raw, err := decodeReceipt(&httpx.Answer{Body: body, Header: http.Header{}}, "t-1")
		if err != nil && raw != nil {
			t.Fatal("a receipt and an error")
		}
	})
}

func FuzzRegistration(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		var a registrationAnswer
		if err := decodeRegistration(body, &a); err == nil && a.agentID == "" && a.apiKey == "" {
			t.Fatal("an agent without id and key")
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"error":"it says: The answer to everything"}`), "The answer to everything")
	f.Add([]byte(`ak_EXAMPLE_KEY`), "x")
	f.Add([]byte("\x1b[31mred"), "")
	f.Fuzz(func(t *testing.T, body []byte, chat string) {
		text := message(&httpx.Answer{Status: 422, Header: http.Header{}, Body: body}, inquiry{chat: chat}, "ak_EXAMPLE_KEY")
		if utf8.RuneCountInString(text) > maxMessage || !utf8.ValidString(text) {
			t.Fatalf("message %q", text)
		}
		if text != withheld && text != plain(text) {
			t.Fatalf("not one plain line: %q", text)
		}
		if text != withheld && quotes(text, chat) {
			t.Fatalf("message %q quotes %q", text, chat)
		}
	})
}

func FuzzOverview(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		if o, err := decodeOverview(body); (o == nil) == (err == nil) {
			t.Fatalf("%v, %v", o, err)
		}
	})
}

func FuzzQuota(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		if q, err := decodeQuota(body); (q == nil) == (err == nil) {
			t.Fatalf("%v, %v", q, err)
		}
	})
}

func FuzzReservation(f *testing.F) {
	asked := FileReservation{ID: someFile, Name: "a.mp4", Size: 10}
	fuzzBodies(f, func(t *testing.T, body []byte) {
		r, err := decodeReservation(body, "t-1", asked)
		if (r == nil) == (err == nil) {
			t.Fatalf("%v, %v", r, err)
		}
		if err != nil {
			return
		}
		if !strings.EqualFold(r.Attachment.ID, someFile) || r.size != 10 || r.taskID != "t-1" {
			t.Fatalf("another file: %v", r)
		}
		if text := fmt.Sprintf("%v %+v %#v", r, r, r); r.UploadURL.Reveal() != "" && len(r.UploadURL.Reveal()) > 20 && strings.Contains(text, r.UploadURL.Reveal()) {
			t.Fatalf("the URL prints: %s", text)
		}
	})
}

func FuzzFinalized(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		g, err := decodeFinalized(&httpx.Answer{Body: body, Header: http.Header{}}, "t-1", someFile)
		if (g == nil) == (err == nil) {
			t.Fatalf("%v, %v", g, err)
		}
		if err == nil && (!strings.EqualFold(g.ID, someFile) || g.Duration != nil && *g.Duration < 0) {
			t.Fatalf("%v", g)
		}
	})
}

func FuzzWithdrawal(f *testing.F) {
	fuzzBodies(f, func(t *testing.T, body []byte) {
		if w, err := decodeWithdrawal(body, "w-1"); (w == nil) == (err == nil) || w != nil && w.ID != "w-1" {
			t.Fatalf("%v, %v", w, err)
		}
		w, err := decodeCreatedWithdrawal(body, someAddress)
		if (w == nil) == (err == nil) {
			t.Fatalf("%v, %v", w, err)
		}
		if err == nil && (w.ID == "" && w.TxHash == "" || w.Status.Confirmed() && w.Status.Failed() || utf8.RuneCountInString(w.Reason) > maxMessage) {
			t.Fatalf("%+v", w)
		}
	})
}
