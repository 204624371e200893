package agentjob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/agentjob/agentjob-go/connections/secret"
)

// recordFormat is the version of what EncodeRecord writes.
const recordFormat = 1

// An envelope is the first line of an encoded record. What follows the line
// is the sealed content, bound to every byte of it.
type envelope struct {
	Format int `json:"format"`
	Record

	// JSON replaces what isn't UTF-8. Bytes has the true value of such strings, by field.
	Bytes map[string][]byte `json:"bytes,omitempty"`

	// Sealed says that content follows, so that a cut is noticed.
	Sealed bool `json:"sealed,omitempty"`
}

// strings returns the strings of a record that others than this package make, in the order of
// stringNames.
func (r *Record) strings() [4]*string {
	return [4]*string{&r.Provider, &r.TaskID, &r.ChatID, &r.Reason}
}

var stringNames = [4]string{"provider", "taskId", "chatId", "reason"}

func (r *Record) times() [4]*time.Time {
	return [4]*time.Time{&r.ClaimedAt, &r.SavedAt, &r.EndedAt, &r.Deadline}
}

// sealedContent is what is sealed of a [Content]. Unlike there, empty is not
// left out, since empty is not nil.
type sealedContent struct {
	Task     []byte `json:"task"` // not as JSON, to keep its exact bytes
	Response []byte `json:"response"`
	Usage    *Usage `json:"usage"`
}

// EncodeRecord returns what a [Store] keeps of a record: its envelope as one line
// of JSON and, if there is content, a line end and the sealed content. The content
// opens only with the same envelope, so neither can be altered or swapped.
// It is for implementers of a Store.
func EncodeRecord(rec Record, sealer *secret.Sealer) ([]byte, error) {
	if err := rec.check(); err != nil {
		return nil, fmt.Errorf("encoding the record of task %q: %w", rec.TaskID, err)
	}
	for _, t := range rec.times() {
		*t = t.UTC()
	}
	env := envelope{Format: recordFormat, Record: rec, Sealed: !rec.Content.IsZero()}
	for i, s := range rec.strings() {
		if !utf8.ValidString(*s) {
			if env.Bytes == nil {
				env.Bytes = map[string][]byte{}
			}
			env.Bytes[stringNames[i]] = []byte(*s)
		}
	}
	line, err := json.Marshal(env)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of task %q: %w", rec.TaskID, err)
	}
	if !env.Sealed {
		return line, nil
	}
	content, err := json.Marshal(sealedContent{rec.Content.Task, rec.Content.Response, rec.Content.Usage})
	if err != nil {
		return nil, fmt.Errorf("encoding the content of task %q: %w", rec.TaskID, err)
	}
	return append(append(line, '\n'), sealer.Seal(content, line)...), nil
}

// DecodeRecord is the inverse of [EncodeRecord]; times come back in UTC. Its errors match
// [ErrStoreDamaged], and also [ErrStoreNewer] or, if the content was sealed with a key that the
// sealer doesn't have, [secret.ErrKeyUnknown]: such a record is whole. The caller compares the record's Provider and TaskID
// with the place where it was found.
func DecodeRecord(data []byte, sealer *secret.Sealer) (Record, error) {
	line, sealed, hasContent := bytes.Cut(data, []byte("\n"))
	env, err := decodeEnvelope(line)
	if err != nil {
		return Record{}, fmt.Errorf("%w: reading a record: %w", ErrStoreDamaged, err)
	}
	rec := env.Record
	damaged := func(err error) (Record, error) {
		return Record{}, fmt.Errorf("%w: reading the record of task %q: %w", ErrStoreDamaged, rec.TaskID, err)
	}
	if hasContent != env.Sealed {
		return damaged(errors.New("its content is cut off or was not announced"))
	}
	if !hasContent {
		return rec, nil
	}
	text, err := sealer.Open(sealed, line)
	if err != nil {
		return damaged(err)
	}
	var content sealedContent
	if err := json.Unmarshal(text, &content); err != nil {
		return damaged(errors.New("its content is not what this release writes")) // err might quote chat text
	}
	rec.Content = Content{Task: content.Task, Response: content.Response, Usage: content.Usage}
	return rec, nil
}

func decodeEnvelope(line []byte) (envelope, error) {
	var env envelope
	err := json.Unmarshal(line, &env)
	if err != nil || env.Format != recordFormat {
		return envelope{}, badEnvelope(line, err)
	}
	for i, s := range env.strings() {
		if exact, ok := env.Bytes[stringNames[i]]; ok {
			*s = string(exact)
		}
	}
	for _, t := range env.times() {
		*t = t.UTC()
	}
	return env, env.check()
}

// badEnvelope says why an envelope is none of this version. err is that of reading it.
func badEnvelope(line []byte, err error) error {
	var version struct{ Format int } // only this may be expected of a newer one
	switch e := json.Unmarshal(line, &version); {
	case e != nil:
		return fmt.Errorf("its envelope: %w", e)
	case version.Format > recordFormat:
		return fmt.Errorf("%w (it has format %d, this one reads %d)", ErrStoreNewer, version.Format, recordFormat)
	case version.Format != recordFormat:
		return errors.New("its envelope has no format version")
	}
	return fmt.Errorf("its envelope: %w", err)
}

// check finds what no record may be, in memory or on disk.
func (r *Record) check() error {
	if r.Provider == "" || r.TaskID == "" {
		return errors.New("it has no provider or no task id")
	}
	if _, known := transitions[r.State]; !known || r.State == "" {
		return fmt.Errorf("its state %q is unknown", r.State)
	}
	return nil
}
