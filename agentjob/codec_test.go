package agentjob_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/wallet/usdc"
)

func newSealer(t testing.TB) *secret.Sealer {
	t.Helper()
	key := secret.NewKey()
	sealer, err := secret.NewSealer(t.Context(), secret.KeyFunc(func(context.Context) ([]secret.Key, error) {
		return []secret.Key{key}, nil
	}))
	require.NoError(t, err)
	return sealer
}

const chatText = "CANARY-chat-text"

func fullRecord() agentjob.Record {
	tokens := int64(0)
	at := time.Date(2026, 11, 9, 8, 7, 6, 543_210_987, time.UTC)
	return agentjob.Record{
		Provider: "agent-1", TaskID: "task/\x00\xff", ChatID: "chat\xfe", State: agentjob.StateSaved,
		ClaimedAt: at, SavedAt: at.Add(1), Deadline: at.Add(time.Hour), Resumed: 2, Status: 409, Reason: "because\n\xff",
		Amount: new(usdc.Amount(10_000)),
		Content: agentjob.Content{
			Task: json.RawMessage("{ \"text\": \"" + chatText + "\" }"), Response: []byte(chatText),
			Usage: &agentjob.Usage{Model: "m", OutputTokens: &tokens},
		},
	}
}

func TestRecordRoundTrip(t *testing.T) {
	sealer := newSealer(t)
	for name, change := range map[string]func(*agentjob.Record){
		"full":           func(*agentjob.Record) {},
		"no content":     func(r *agentjob.Record) { r.Content = agentjob.Content{} },
		"empty response": func(r *agentjob.Record) { r.Content = agentjob.Content{Response: []byte{}} },
		"no times":       func(r *agentjob.Record) { r.ClaimedAt, r.SavedAt, r.Deadline = time.Time{}, time.Time{}, time.Time{} },
		"odd provider":   func(r *agentjob.Record) { r.Provider = "\xff\n/.." },
	} {
		t.Run(name, func(t *testing.T) {
			want := fullRecord()
			change(&want)
			data, err := agentjob.EncodeRecord(want, sealer)
			require.NoError(t, err)
			got, err := agentjob.DecodeRecord(data, sealer)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.NotContains(t, string(data), chatText)
		})
	}
}

func TestEnvelopeIsOneReadableLine(t *testing.T) {
	rec := fullRecord()
	rec.TaskID = "task-1"
	data, err := agentjob.EncodeRecord(rec, newSealer(t))
	require.NoError(t, err)
	line, _, found := bytes.Cut(data, []byte("\n"))
	require.True(t, found)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(line, &fields))
	assert.Equal(t, "task-1", fields["taskId"])
	assert.Equal(t, "saved", fields["state"])
	assert.EqualValues(t, 1, fields["format"])
}

func TestAnyChangeOfARecordIsDamage(t *testing.T) {
	sealer := newSealer(t)
	data, err := agentjob.EncodeRecord(fullRecord(), sealer)
	require.NoError(t, err)
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		_, err := agentjob.DecodeRecord(changed, sealer)
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged, "byte %d changed", i)
		_, err = agentjob.DecodeRecord(data[:i], sealer)
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged, "cut to %d bytes", i)
		require.NotContains(t, err.Error(), chatText)
	}
}

func TestContentCantBeSwapped(t *testing.T) {
	sealer := newSealer(t)
	split := func(change func(*agentjob.Record)) (line, sealed []byte) {
		rec := fullRecord()
		change(&rec)
		data, err := agentjob.EncodeRecord(rec, sealer)
		require.NoError(t, err)
		line, sealed, _ = bytes.Cut(data, []byte("\n"))
		return line, sealed
	}
	_, sealed := split(func(*agentjob.Record) {})
	for name, change := range map[string]func(*agentjob.Record){
		"task":     func(r *agentjob.Record) { r.TaskID = "another" },
		"provider": func(r *agentjob.Record) { r.Provider = "another" },
		"state":    func(r *agentjob.Record) { r.State = agentjob.StateEnded },
		"deadline": func(r *agentjob.Record) { r.Deadline = r.Deadline.Add(1) },
	} {
		line, _ := split(change)
		_, err := agentjob.DecodeRecord(append(append(line, '\n'), sealed...), sealer)
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged, name)
		require.ErrorIs(t, err, secret.ErrTampered, name)
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	sealer := newSealer(t)
	data, err := agentjob.EncodeRecord(fullRecord(), newSealer(t))
	require.NoError(t, err)
	_, err = agentjob.DecodeRecord(data, sealer)
	require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
	require.ErrorIs(t, err, secret.ErrKeyUnknown)

	const rest = `"provider":"p","taskId":"t","state":"claimed","claimedAt":"2026-11-09T00:00:00Z"}`
	for text, want := range map[string]string{
		`{"format":2,"taskId":7}`:           "a newer version of this program wrote it: update this program (it has format 2",
		`{"format":0,` + rest:               "no format version",
		`{` + rest:                          "no format version",
		``:                                  "unexpected end",
		`null`:                              "no format version",
		`{"format":1,` + rest + "\n":        "cut off or was not announced",
		`{"format":1,"sealed":true,` + rest: "cut off or was not announced",
		`{"format":1,"provider":"p","taskId":"t","state":"x"}`: `state "x" is unknown`,
		`{"format":1,"provider":"p","state":"saved"}`:          "no provider or no task id",
		`{"format":1,"taskId":"t","claimedAt":"yesterday"}`:    "envelope",
	} {
		_, err := agentjob.DecodeRecord([]byte(text), sealer)
		require.ErrorIs(t, err, agentjob.ErrStoreDamaged, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err = agentjob.DecodeRecord([]byte(`{"format":1,`+rest), sealer)
	require.NoError(t, err)
	_, err = agentjob.DecodeRecord([]byte(`{"format":2}`), sealer)
	require.ErrorIs(t, err, agentjob.ErrStoreNewer)
}

func TestEncodeRefusesWhatCouldNotBeRead(t *testing.T) {
	sealer := newSealer(t)
	for name, change := range map[string]func(*agentjob.Record){
		"no task":       func(r *agentjob.Record) { r.TaskID = "" },
		"no provider":   func(r *agentjob.Record) { r.Provider = "" },
		"no state":      func(r *agentjob.Record) { r.State = "" },
		"unknown state": func(r *agentjob.Record) { r.State = "done" },
		"year 10000":    func(r *agentjob.Record) { r.Deadline = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		rec := fullRecord()
		change(&rec)
		_, err := agentjob.EncodeRecord(rec, sealer)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), chatText)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	sealer := newSealer(f)
	for _, rec := range []agentjob.Record{fullRecord(), {Provider: "p", TaskID: "\xff", State: agentjob.StateEnded}} {
		data, err := agentjob.EncodeRecord(rec, sealer)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"format":1,"provider":"p","taskId":"t","state":"claimed","claimedAt":"2026-11-09T00:00:00+23:59","bytes":{"taskId":"/w=="}}`))
	f.Add([]byte(strings.Repeat(`{"format":`, 50)))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := agentjob.DecodeRecord(data, sealer)
		if err != nil {
			require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
			return
		}
		again, err := agentjob.EncodeRecord(rec, sealer)
		if err != nil { // an hour before year 0 or after 9999 in UTC
			require.Contains(t, fmt.Sprint(err), "year outside of range")
			return
		}
		got, err := agentjob.DecodeRecord(again, sealer)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}
