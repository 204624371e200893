package agentjob_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
)

// Every record that can be written is read as it was, whatever its ids, reason and content hold
// (of a model's name only its UTF-8), and nothing of its content is readable.
func FuzzRecordRoundTrip(f *testing.F) {
	f.Add("agent", "task", "chat", "why", uint8(1), uint8(0), 0, int64(1_794_219_630_000_000_000), int64(0), []byte(nil), []byte(nil), "", int64(-1))
	f.Add("\xff\n", "task/\x00", "\u2028", "\"", uint8(2), uint8(3), 409, int64(-1), int64(1), []byte("{\xff"), []byte{}, "m\xff", int64(0))
	f.Add("", "", "", "", uint8(3), uint8(9), -1, int64(1<<62), int64(-1<<62), []byte(`{"a":1}`), []byte("CANARY reply"), "model", int64(1<<62))
	states := []agentjob.State{"", agentjob.StateClaimed, agentjob.StateSaved, agentjob.StateEnded, "done"}
	ends := []agentjob.End{"", agentjob.EndDelivered, agentjob.EndRejected, agentjob.EndExpired, "new"}
	sealer := newSealer(f)
	f.Fuzz(func(t *testing.T, provider, task, chat, reason string, state, end uint8, status int, at, later int64, raw, response []byte, model string, tokens int64) {
		want := agentjob.Record{
			Provider: provider, TaskID: task, ChatID: chat, Reason: reason, Status: status, Resumed: int(state),
			State: states[int(state)%len(states)], End: ends[int(end)%len(ends)],
			ClaimedAt: time.Unix(0, at).UTC(), Deadline: time.Unix(0, later).UTC(),
			Content: agentjob.Content{Task: json.RawMessage(raw), Response: response},
		}
		if tokens >= 0 {
			want.Content.Usage = &agentjob.Usage{Model: strings.ToValidUTF8(model, ""), InputTokens: &tokens}
		}
		data, err := agentjob.EncodeRecord(want, sealer)
		if want.Provider == "" || want.TaskID == "" || want.State == "" || want.State == "done" {
			require.Error(t, err, "it could not be read again")
			return
		}
		require.NoError(t, err)
		got, err := agentjob.DecodeRecord(data, sealer)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NotContains(t, string(data), "CANARY")
	})
}
