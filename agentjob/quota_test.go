package agentjob

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

var admin = AdminSession{secret.New("theme=dark; session=S3CRET-SESSION")}

func TestQuotaReadsEveryShape(t *testing.T) {
	want := RegistrationQuota{Enabled: new(true), Date: "2026-11-09", Used: new(int64(3)), Limit: new(int64(100)), Remaining: new(int64(97))}
	for _, payload := range []string{
		`{"enabled":true,"date":"2026-11-09","used":3,"limit":100,"remaining":97}`,
		`{"enabled":"true","date":"2026-11-09","used":"3","limit":"100","remaining":"97"}`,
		`{"quota":{"enabled":1,"date":"2026-11-09","used":3,"limit":100,"remaining":97}}`,
	} {
		for _, body := range wrapped(payload) {
			q, err := answering(t, 200, jsonType, body).RegistrationQuota(t.Context(), admin)
			require.NoError(t, err, body)
			assert.JSONEq(t, body, string(q.Raw))
			q.Raw = nil
			assert.Equal(t, &want, q, body)
		}
	}
	q, err := answering(t, 200, jsonType, `{"enabled":"maybe","used":-1,"limit":null}`).RegistrationQuota(t.Context(), admin)
	require.NoError(t, err)
	assert.Equal(t, &RegistrationQuota{Raw: q.Raw}, q, "what is not told is not zero")
	for _, body := range []string{``, `null`, `[]`, `{`} {
		_, err := answering(t, 200, jsonType, body).RegistrationQuota(t.Context(), admin)
		assert.ErrorIs(t, err, ErrMalformedResponse, body)
	}
}

func TestTheQuotaNeverSeesTheProviderKey(t *testing.T) {
	for _, key := range []string{"", "ak_EXAMPLE_KEY"} {
		var got []*http.Request
		m := httpmock.NewMockTransport()
		m.RegisterNoResponder(func(r *http.Request) (*http.Response, error) {
			got = append(got, r)
			return httpmock.NewStringResponse(200, `{"used":1}`), nil
		})
		c, err := NewClient(ClientConfig{APIKey: secret.New(key), HTTPClient: &http.Client{Transport: m}})
		require.NoError(t, err)
		_, err = c.RegistrationQuota(t.Context(), admin)
		require.NoError(t, err, "a client without a key will do")
		require.Len(t, got, 1)
		assert.Equal(t, "/api/register/auto/quota", got[0].URL.String()[len(DefaultBaseURL):])
		assert.Equal(t, http.Header{"Cookie": {"theme=dark; session=S3CRET-SESSION"}, "Accept": {"application/json"}, "User-Agent": {defaultUserAgent}}, got[0].Header)
	}
}

func TestARefusedSessionIsNoRefusedKey(t *testing.T) {
	for _, status := range []int{401, 403} {
		_, err := answering(t, status, jsonType, `{"error":"session S3CRET-SESSION is none"}`).RegistrationQuota(t.Context(), admin)
		require.ErrorIs(t, err, ErrAdminSession)
		assert.NotErrorIs(t, err, ErrUnauthorized)
		assert.NotErrorIs(t, err, ErrForbidden)
	}
}

func TestNothingTellsTheSession(t *testing.T) {
	var out bytes.Buffer
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(func(r *http.Request) (*http.Response, error) {
		return httpmock.NewStringResponse(422, `{"error":"bad: S3CRET-SESSION"}`), nil
	})
	c, err := NewClient(ClientConfig{HTTPClient: &http.Client{Transport: m}, Logger: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	_, err = c.RegistrationQuota(t.Context(), admin)
	require.ErrorIs(t, err, ErrInvalid)
	e, ok := errors.AsType[*APIError](err)
	require.True(t, ok)
	assert.Empty(t, e.Message)
	assert.NotContains(t, err.Error(), "S3CRET")
	assert.NotContains(t, out.String(), "S3CRET")
	assert.Contains(t, out.String(), "registration quota")
}
