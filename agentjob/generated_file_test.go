package agentjob

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const someUpload = "https://files.example/put/S3CRET?X-Signature=S3CRET"

var someReservation = FileReservation{ID: someFile, Name: "clip.mp4", Size: 10}

func TestReservationsReadEveryShape(t *testing.T) {
	for _, payload := range []string{
		`{"attachment":{"id":"` + someFile + `","name":"clip.mp4","contentType":"video/mp4","size":10},"ready":false,"uploadUrl":"` + someUpload + `"}`,
		`{"file":{"id":"` + someFile + `","name":"clip.mp4","mime_type":"video/mp4","size":"10"},"ready":"false","upload_url":"` + someUpload + `"}`,
		`{"attachment":{"id":"` + someFile + `","name":"clip.mp4","contentType":"video/mp4","size":10,"ready":false},"upload":{"url":"` + someUpload + `","headers":{"Content-Type":"video/mp4","Content-Length":"10"}}}`,
		`{"id":"` + someFile + `","name":"clip.mp4","contentType":"video/mp4","size":10,"uploadURL":"` + someUpload + `","taskId":"t-1"}`,
	} {
		for _, body := range wrapped(payload) {
			f, err := answering(t, 200, jsonType, body).secured().ReserveFile(t.Context(), "t-1", someReservation)
			require.NoError(t, err, body)
			assert.False(t, f.Ready)
			assert.Equal(t, someUpload, f.UploadURL.Reveal())
			assert.Equal(t, "video/mp4", f.contentType)
			assert.JSONEq(t, body, f.Raw.Reveal())
			a := f.Attachment
			assert.Equal(t, []any{someFile, "clip.mp4", "video/mp4", int64(10)}, []any{a.ID, a.Name, a.ContentType, *a.Size})
		}
	}
}

func TestWhatAReservationMayLeaveOut(t *testing.T) {
	f, err := answering(t, 200, jsonType, `{"uploadUrl":"`+someUpload+`"}`).secured().ReserveFile(t.Context(), "t-1", someReservation)
	require.NoError(t, err)
	assert.Equal(t, someFile, f.Attachment.ID)
	assert.Equal(t, "video/mp4", f.contentType, "by the name")
	f, err = answering(t, 200, jsonType, `{"ready":true}`).ReserveFile(t.Context(), "t-1", someReservation)
	require.NoError(t, err)
	assert.True(t, f.Ready)
	assert.True(t, f.UploadURL.IsZero())
	f, err = answering(t, 200, jsonType, `{"contentType":"video/mp4; codecs=avc1","uploadUrl":"`+someUpload+`"}`).secured().ReserveFile(t.Context(), "t-1", someReservation)
	require.NoError(t, err)
	assert.Equal(t, "video/mp4; codecs=avc1", f.contentType, "exactly as told")
}

func TestReservationsThatCantBeUsed(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"ready":false}`, `{"ready":false,"uploadUrl":""}`, `{"uploadUrl":"http://files.example/S3CRET"}`, `{"uploadUrl":"/S3CRET"}`,
		`{"uploadUrl":"https://me:S3CRET@files.example/"}`, `{"uploadUrl":"ftp://files.example/S3CRET"}`, `{"uploadUrl":"https:///S3CRET"}`,
		`{"attachment":{"id":"0f0f0f0f-0000-4000-8000-000000000005"},"uploadUrl":"` + someUpload + `"}`,
		`{"attachment":{"size":11},"uploadUrl":"` + someUpload + `"}`, `{"contentLength":11,"uploadUrl":"` + someUpload + `"}`,
		`{"attachment":{"contentType":"S3CRET\r\nEvil: 1"},"uploadUrl":"` + someUpload + `"}`,
		`{"taskId":"t-2","uploadUrl":"` + someUpload + `"}`, `[]`, ``, `{"uploadUrl":"` + someUpload + `"`,
	} {
		_, err := answering(t, 200, jsonType, body).secured().ReserveFile(t.Context(), "t-1", someReservation)
		require.ErrorIs(t, err, ErrMalformedResponse, body)
		assert.NotContains(t, err.Error(), "S3CRET")
	}
	_, err := answering(t, 200, jsonType, `{"uploadUrl":"`+someUpload+`"}`).secured().ReserveFile(t.Context(), "t-1", FileReservation{ID: someFile, Name: "clip", Size: 1})
	assert.ErrorIs(t, err, ErrMalformedResponse, "nothing tells the type")
	for status, kind := range map[int]error{409: ErrConflict, 413: ErrInvalid, 422: ErrInvalid, 404: ErrNotFound} {
		_, err := answering(t, status, jsonType, `{"error":"not `+someUpload+`"}`).ReserveFile(t.Context(), "t-1", someReservation)
		require.ErrorIs(t, err, kind)
		assert.ErrorContains(t, err, "reserve a file of task t-1")
	}
}

func TestNothingPrintsAnUploadURL(t *testing.T) {
	f, err := answering(t, 200, jsonType, `{"attachment":{"url":"`+someUpload+`"},"uploadUrl":"`+someUpload+`"}`).secured().ReserveFile(t.Context(), "t-1", someReservation)
	require.NoError(t, err)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %s", f, f, f, text), "S3CRET")
	assert.Equal(t, someUpload, f.Attachment.URL.Reveal())
}

func TestFinalizedFilesReadEveryShape(t *testing.T) {
	for _, payload := range []string{
		`{"attachment":{"id":"` + someFile + `","name":"clip.mp4","contentType":"video/mp4","size":10,"durationSeconds":1.5,"url":"https://h/f"},"ready":true}`,
		`{"file":{"id":"` + someFile + `","name":"clip.mp4","content_type":"video/mp4","size":"10","duration_seconds":"1.5","url":"https://h/f"}}`,
		`{"id":"` + someFile + `","name":"clip.mp4","mimeType":"video/mp4","size":10,"durationSeconds":1.5,"url":"https://h/f"}`,
	} {
		for _, body := range wrapped(payload) {
			g, err := answering(t, 200, jsonType, body).FinalizeFile(t.Context(), "t-1", someFile)
			require.NoError(t, err, body)
			assert.Equal(t, []any{someFile, "clip.mp4", "video/mp4", int64(10), 1500 * time.Millisecond}, []any{g.ID, g.Name, g.ContentType, *g.Size, *g.Duration})
			assert.Equal(t, "https://h/f", g.URL.Reveal())
		}
	}
	for _, body := range []string{`{}`, ``, `{"ok":true}`, `null`, `{"attachment":{"durationSeconds":null,"size":-1}}`, `{"durationSeconds":-1}`, `{"durationSeconds":"NaN"}`, `{"durationSeconds":1e99}`} {
		g, err := answering(t, 200, jsonType, body).FinalizeFile(t.Context(), "t-1", someFile)
		require.NoError(t, err, body)
		assert.Equal(t, someFile, g.ID)
		assert.Nil(t, g.Duration, "not told is not zero")
		assert.Nil(t, g.Size)
	}
	for body, kind := range map[string]error{
		`{"attachment":{"id":"0f0f0f0f-0000-4000-8000-000000000005"}}`: ErrMalformedResponse,
		`{"taskId":"t-2"}`: ErrMalformedResponse, `{`: ErrMalformedResponse, `{"ok":false}`: ErrUnavailable, `{"ready":false}`: ErrUnavailable,
	} {
		_, err := answering(t, 200, jsonType, body).FinalizeFile(t.Context(), "t-1", someFile)
		assert.ErrorIs(t, err, kind, body)
	}
}
