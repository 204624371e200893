package agentjob

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
)

// A generated file goes to the customer in four steps: [Client.ReserveFile],
// [Client.UploadFile], [Client.FinalizeFile], and [Client.Respond] with its id. All may
// be repeated with the same id, name and bytes.

// A FileReservation announces a file that was generated for a task: a PNG, JPEG or WebP image or
// an MP4 video. How large and how many they may be is the platform's to say
// ([TaskProgress].Limits); by default one MP4 of 50 MB and 120 seconds.
type FileReservation struct {
	ID   string // a UUID, drawn once for the file and kept beside it: a repeat with the same is free
	Name string // as the customer sees it, such as "clip.mp4", without folders
	Size int64  // bytes
}

// A GeneratedFile is a file as the platform describes it. A field that it left out is empty or nil.
type GeneratedFile struct {
	ID          string
	Name        string
	ContentType string
	Size        *int64         // bytes
	Duration    *time.Duration // of a video
	URL         secret.Secret  // where it can be seen, if that was told
	Raw         secret.Secret  // its JSON, which may hold private URLs
}

// A ReservedFile is a place for a file's bytes. It is immutable and safe for concurrent use.
type ReservedFile struct {
	Attachment GeneratedFile // what the platform knows before it has the bytes

	// Ready: the platform has the bytes already, and UploadFile sends nothing.
	// They still have to be finalized.
	Ready bool
	// UploadURL is where the bytes go: whoever has it can write the file. It is good for five
	// minutes; ReserveFile with the same reservation renews it. Zero if there is none.
	UploadURL secret.Secret

	Raw secret.Secret // the whole answer, which holds the URL

	taskID      string
	size        int64
	contentType string // of the upload
}

// ReserveFile asks for a place for a generated file's bytes. The same reservation again takes
// no more of the quota, so ReserveFile retries by itself. [ErrConflict] means that the task is over,
// [ErrInvalid] that the platform does not want this file: its type, its size, or one too many.
func (c *Client) ReserveFile(ctx context.Context, taskID string, r FileReservation) (*ReservedFile, error) {
	if err := checkTaskID(taskID); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Size int64  `json:"size"`
	}{r.ID, r.Name, r.Size})
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, inquiry{op: opReserveFile, method: "POST", path: taskPath(taskID, "files"), taskID: taskID, body: body, chat: r.Name, silent: true},
		func(a *httpx.Answer) (*ReservedFile, error) {
			f, err := decodeReservation(a.Body, taskID, r)
			if err == nil && !f.Ready && !c.usableURL(f.UploadURL.Reveal()) {
				return nil, errUploadURL
			}
			return f, err
		})
}

// FinalizeFile has the platform validate the uploaded bytes and returns what it found. Only
// then may the file be part of a response. The same again finds the same, so FinalizeFile retries by
// itself. [ErrInvalid] means that the platform does not take the file, such as a fragmented or
// too long video; [ErrNotFound] that it was never reserved; [ErrConflict] that the task is over.
func (c *Client) FinalizeFile(ctx context.Context, taskID, fileID string) (*GeneratedFile, error) {
	if err := checkTaskID(taskID); err != nil {
		return nil, err
	}
	if err := checkFileID("fileID", fileID); err != nil {
		return nil, err
	}
	body, err := json.Marshal(struct {
		ID string `json:"id"`
	}{fileID})
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, inquiry{op: opFinalizeFile, method: "PATCH", path: taskPath(taskID, "files"), taskID: taskID, body: body, silent: true},
		func(a *httpx.Answer) (*GeneratedFile, error) { return decodeFinalized(a, taskID, fileID) })
}
