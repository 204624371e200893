package agentjob

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/connections/secret"
)

const registered = `{"ok":true,"data":{"agentId":"a-1","walletAddress":"0x01","walletType":"server_wallet","apiKey":"ak_EXAMPLE_NEW","message":"Keep it.","more":[1]}}`

// A registrar is a platform that answers registrations, one after the other, and
// repeats the last answer.
type registrar struct {
	*Client
	file    string
	answers []httpmock.Responder
	bodies  []map[string]any
}

func newRegistrar(t *testing.T, answers ...httpmock.Responder) *registrar {
	t.Helper()
	r := &registrar{file: filepath.Join(t.TempDir(), "state", "registration.json"), answers: answers}
	r.Client = r.client(t, "https://platform.test")
	return r
}

func (r *registrar) client(t *testing.T, base string) *Client {
	m := httpmock.NewMockTransport()
	m.RegisterResponder(http.MethodPost, base+"/api/register/auto", func(req *http.Request) (*http.Response, error) {
		assert.Empty(t, req.Header.Get("Authorization"), "no key is sent to register")
		body, err := io.ReadAll(req.Body)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(body, &fields))
		stored, err := readRegistration(r.file)
		require.NoError(t, err, "the file is there before the request")
		assert.Equal(t, stored.IdempotencyKey, fields["idempotencyKey"])
		assert.Equal(t, attemptSent, stored.Attempts[len(stored.Attempts)-1].Outcome)
		r.bodies = append(r.bodies, fields)
		return r.answers[min(len(r.bodies), len(r.answers))-1](req)
	})
	c, err := NewClient(ClientConfig{BaseURL: base, APIKey: secret.New("ak_OTHER"), HTTPClient: &http.Client{Transport: m}})
	require.NoError(t, err)
	return c
}

func (r *registrar) register(t *testing.T, name string) (*Registration, error) {
	return r.Register(t.Context(), RegisterOptions{File: r.file, AgentName: name})
}

func (r *registrar) attempts(t *testing.T) (outcomes []attemptOutcome) {
	t.Helper()
	f, err := readRegistration(r.file)
	require.NoError(t, err)
	for _, a := range f.Attempts {
		outcomes = append(outcomes, a.Outcome)
	}
	return outcomes
}

func TestARegistrationIsKeptAndNotRepeated(t *testing.T) {
	r := newRegistrar(t, reply(201, jsonType, registered))
	before := time.Now().UTC()
	reg, err := r.register(t, "Ärztin")
	require.NoError(t, err)
	assert.Equal(t, Registered, reg.Outcome)
	assert.Equal(t, "ak_EXAMPLE_NEW", reg.APIKey.Reveal())
	assert.WithinRange(t, reg.At, before, time.Now())
	want := Registration{
		Outcome: Registered, AgentID: "a-1", AgentName: "Ärztin", WalletAddress: "0x01", WalletType: "server_wallet",
		Message: "Keep it.", BaseURL: "https://platform.test", File: r.file, At: reg.At,
	}
	got := *reg
	got.APIKey = secret.Secret{}
	assert.Equal(t, want, got)
	require.Len(t, r.bodies, 1)
	assert.Equal(t, "Ärztin", r.bodies[0]["agentName"])
	_, err = uuid.Parse(r.bodies[0]["idempotencyKey"].(string))
	assert.NoError(t, err)

	for _, name := range []string{"Ärztin", ""} {
		again, err := r.register(t, name)
		require.NoError(t, err)
		assert.Equal(t, "ak_EXAMPLE_NEW", again.APIKey.Reveal())
		assert.True(t, again.At.Equal(reg.At))
	}
	loaded, err := LoadRegistration(r.file)
	require.NoError(t, err)
	assert.Equal(t, "ak_EXAMPLE_NEW", loaded.APIKey.Reveal())
	assert.Len(t, r.bodies, 1, "one request for all")

	data, err := os.ReadFile(r.file)
	require.NoError(t, err)
	assert.Contains(t, string(data), `\"more\":[1]`, "the whole answer is kept")
	for path, mode := range map[string]fs.FileMode{r.file: 0o600, r.file + ".lock": 0o600, filepath.Dir(r.file): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), path)
	}
}

func TestAnExistingAgentWithoutAKeyIsItsOwnOutcome(t *testing.T) {
	for _, body := range []string{
		`{"ok":true,"data":{"agentId":"a-1","walletAddress":"0x01","walletType":"server_wallet","apiKey":null,"message":"exists"}}`,
		`{"ok":true,"data":{"agent_id":"a-1","wallet_address":"0x01","wallet_type":"server_wallet","api_key":" ","message":"exists"}}`,
		`{"data":{"id":"a-1","walletAddress":"0x01","walletType":"server_wallet","apiKey":{},"message":"exists"}}`,
		`{"agentId":"a-1","walletAddress":"0x01","walletType":"server_wallet","message":"exists"}`,
	} {
		r := newRegistrar(t, reply(201, jsonType, body))
		for range 2 {
			reg, err := r.register(t, "")
			require.NoError(t, err, body)
			assert.Equal(t, ExistsKeyNotReturned, reg.Outcome)
			assert.True(t, reg.APIKey.IsZero())
			assert.Equal(t, []string{"a-1", "0x01", "server_wallet", "exists"}, []string{reg.AgentID, reg.WalletAddress, reg.WalletType, reg.Message})
		}
		assert.Len(t, r.bodies, 1)
		assert.NotContains(t, r.bodies[0], "agentName")
	}
}

// TestALostAnswerIsAskedForWithTheSameKey covers every way to lose an answer.
func TestALostAnswerIsAskedForWithTheSameKey(t *testing.T) {
	cut := func(*http.Request) (*http.Response, error) {
		r := httpmock.NewStringResponse(201, "")
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(registered[:90]), failingReader{}))
		return r, nil
	}
	for name, c := range map[string]struct {
		answer  httpmock.Responder
		kind    error
		outcome attemptOutcome
	}{
		"no connection":  {httpmock.NewErrorResponder(io.EOF), ErrUnreachable, attemptSent},
		"never sent":     {httpmock.NewErrorResponder(&net.OpError{Op: "dial", Err: errors.New("refused")}), ErrUnreachable, attemptNotSent},
		"cut":            {cut, ErrMalformedResponse, attemptUnreadable},
		"a page":         {reply(201, "text/html", "<html>"), ErrMalformedResponse, attemptUnreadable},
		"nothing":        {reply(201, jsonType, `{"ok":true,"data":{}}`), ErrMalformedResponse, attemptUnreadable},
		"empty":          {reply(201, jsonType, ``), ErrMalformedResponse, attemptUnreadable},
		"a failed 201":   {reply(201, jsonType, `{"ok":false,"error":"sorry"}`), ErrRegistrationUnavailable, attemptUnavailable},
		"503":            {reply(503, jsonType, `{"error":"Registration is in progress"}`), ErrRegistrationBusy, attemptBusy},
		"503 without":    {reply(503, "text/html", `<html disabled>`), ErrRegistrationUnavailable, attemptUnavailable},
		"429":            {reply(429, jsonType, `{"error":"Too many"}`), ErrRateLimited, attemptRateLimited},
		"500":            {reply(500, "", ``), ErrRegistrationUnavailable, attemptUnavailable},
		"400":            {reply(400, jsonType, `{"error":"bad name"}`), ErrInvalid, attemptRefused},
		"a redirect":     {reply(307, "", ``), ErrUnavailable, attemptUnavailable},
		"switched off":   {reply(503, jsonType, `{"error":"Server wallets are disabled"}`), ErrRegistrationDisabled, attemptDisabled},
		"unknown at all": {reply(404, "text/html", `<html>`), ErrMalformedResponse, attemptUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistrar(t, c.answer, reply(201, jsonType, registered))
			reg, err := r.register(t, "Example")
			assert.Nil(t, reg)
			assert.ErrorIs(t, err, c.kind)
			assert.NotContains(t, err.Error(), r.bodies[0]["idempotencyKey"])
			assert.Len(t, r.bodies, 1, "never sent again on its own")
			assert.Equal(t, []attemptOutcome{c.outcome}, r.attempts(t))
			pending, err := LoadRegistration(r.file)
			require.NoError(t, err)
			assert.Equal(t, RegistrationPending, pending.Outcome)

			reg, err = r.register(t, "")
			require.NoError(t, err)
			assert.Equal(t, Registered, reg.Outcome)
			assert.Equal(t, r.bodies[0], r.bodies[1], "the same key and the stored name")
			assert.Equal(t, []attemptOutcome{c.outcome, attemptRegistered}, r.attempts(t))
		})
	}
}

func TestAKeyInABrokenButWholeAnswerIsNotLost(t *testing.T) {
	r := newRegistrar(t, func(*http.Request) (*http.Response, error) {
		resp := httpmock.NewStringResponse(201, "")
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(registered), failingReader{}))
		return resp, nil
	})
	reg, err := r.register(t, "")
	require.NoError(t, err)
	assert.Equal(t, "ak_EXAMPLE_NEW", reg.APIKey.Reveal())
}

// TestADeathBetweenRequestAndAnswer looks at the file at the moment of the request.
func TestADeathBetweenRequestAndAnswer(t *testing.T) {
	r := newRegistrar(t, reply(201, jsonType, registered))
	var then []byte
	answer := r.answers[0]
	r.answers[0] = func(req *http.Request) (*http.Response, error) {
		if then == nil {
			var err error
			then, err = os.ReadFile(r.file)
			require.NoError(t, err)
		}
		return answer(req)
	}
	_, err := r.register(t, "Example")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(r.file, then, 0o600))
	advice, err := NextRegistrationTry(r.file, time.Now())
	require.NoError(t, err)
	assert.Contains(t, advice.Reason, "same key")
	_, err = r.register(t, "")
	require.NoError(t, err)
	assert.Equal(t, r.bodies[0], r.bodies[1])
}

func TestWhyRegistrationsAreRefused(t *testing.T) {
	for text, want := range map[string]struct {
		status int
		kind   error
		window RateWindow
	}{
		"Auto registration is disabled":         {503, ErrRegistrationDisabled, ""},
		"Server wallet creation is turned off":  {503, ErrRegistrationDisabled, ""},
		"Registration busy, try again":          {503, ErrRegistrationBusy, ""},
		"Another registration is in progress":   {503, ErrRegistrationBusy, ""},
		"Could not acquire lock":                {503, ErrRegistrationBusy, ""},
		"The request was blocked":               {503, ErrRegistrationUnavailable, ""},
		"Service unavailable":                   {503, ErrRegistrationUnavailable, ""},
		"it is disabled":                        {500, ErrRegistrationUnavailable, ""},
		"Too many registrations from this IP":   {429, ErrRateLimited, WindowPerIP},
		"Limit per address reached":             {429, ErrRateLimited, WindowPerIP},
		"Platform quota exhausted":              {429, ErrRateLimited, WindowPlatform},
		"Daily server wallet limit reached":     {429, ErrRateLimited, WindowPlatform},
		"Too many tries, participate tomorrow!": {429, ErrRateLimited, WindowUnknown},
	} {
		body, err := json.Marshal(map[string]string{"error": text})
		require.NoError(t, err)
		r := newRegistrar(t, reply(want.status, jsonType, string(body)))
		_, err = r.register(t, "")
		e, ok := errors.AsType[*APIError](err)
		require.True(t, ok)
		assert.Equal(t, want.kind, e.Kind, text)
		assert.Equal(t, want.window, e.Window, text)
		if want.status == 429 {
			assert.Equal(t, nextUTCDay(time.Now()), e.ResetsAt)
		}
		for _, word := range []string{"delet", "remov"} {
			assert.NotContains(t, strings.ToLower(err.Error()), word)
		}
	}
}

func TestAFileBelongsToOneAgentOnOnePlatform(t *testing.T) {
	for name, first := range map[string]httpmock.Responder{"pending": reply(503, "", ""), "done": reply(201, jsonType, registered)} {
		r := newRegistrar(t, first)
		_, _ = r.register(t, "Example")
		before, err := os.ReadFile(r.file)
		require.NoError(t, err)
		var v *ValidationError
		_, err = r.register(t, "Other")
		require.ErrorAs(t, err, &v, name)
		assert.Equal(t, "AgentName", v.Field)
		_, err = r.client(t, "https://other.test").Register(t.Context(), RegisterOptions{File: r.file})
		require.ErrorAs(t, err, &v, name)
		assert.Equal(t, "File", v.Field)
		after, err := os.ReadFile(r.file)
		require.NoError(t, err)
		assert.Equal(t, before, after, name)
		assert.Len(t, r.bodies, 1, "nothing was sent")
	}
}

func TestADamagedFileIsLeftAlone(t *testing.T) {
	for _, content := range []string{
		``, `{`, `null`, `[]`, `{}`, `{"format":1}`, `{"format":2,"baseUrl":"https://platform.test","idempotencyKey":"k"}`,
		`{"format":1,"baseUrl":"https://platform.test","idempotencyKey":""}`, `{"format":1,"baseUrl":"https://platform.test","idempotencyKey":"` + strings.Repeat("k", 89) + `"}`,
		`{"format":1,"baseUrl":"https://platform.test","idempotencyKey":"k","attempts":[null]}`, `{"format":1,"baseUrl":"x","idempotencyKey":"k","attempts":"ak_S3CRET"}`,
	} {
		r := newRegistrar(t, reply(201, jsonType, registered))
		require.NoError(t, os.MkdirAll(filepath.Dir(r.file), 0o700))
		require.NoError(t, os.WriteFile(r.file, []byte(content), 0o600))
		_, err := r.register(t, "")
		require.ErrorContains(t, err, "left as it is", content)
		assert.NotContains(t, err.Error(), "S3CRET")
		_, err = LoadRegistration(r.file)
		assert.Error(t, err)
		_, err = NextRegistrationTry(r.file, time.Now())
		assert.Error(t, err)
		assert.Empty(t, r.bodies)
		after, err := os.ReadFile(r.file)
		require.NoError(t, err)
		assert.Equal(t, content, string(after))
	}
}

func TestAFolderOrFileOthersCanReadIsRefused(t *testing.T) {
	r := newRegistrar(t, reply(201, jsonType, registered))
	require.NoError(t, os.MkdirAll(filepath.Dir(r.file), 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(r.file), 0o755))
	_, err := r.register(t, "")
	require.ErrorContains(t, err, "chmod 700")
	require.NoError(t, os.Chmod(filepath.Dir(r.file), 0o700))
	_, err = r.register(t, "")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(r.file, 0o640))
	_, err = r.register(t, "")
	require.ErrorContains(t, err, "chmod 600")
	assert.Len(t, r.bodies, 1)
}

func TestWithoutAPlaceForTheKeyNothingIsSent(t *testing.T) {
	r := newRegistrar(t, reply(201, jsonType, registered))
	require.NoError(t, os.MkdirAll(filepath.Join(r.file, "a folder where the file should be"), 0o700))
	require.NoError(t, os.Chmod(r.file, 0o700))
	_, err := r.register(t, "")
	assert.Error(t, err)
	assert.Empty(t, r.bodies)
}

func TestAnAnswerThatCantBeKeptIsReturnedWithAnError(t *testing.T) {
	r := newRegistrar(t)
	r.answers = []httpmock.Responder{func(req *http.Request) (*http.Response, error) {
		// From here on the name can't be replaced by a file.
		require.NoError(t, os.Remove(r.file))
		require.NoError(t, os.MkdirAll(filepath.Join(r.file, "x"), 0o700))
		return reply(201, jsonType, registered)(req)
	}}
	reg, err := r.register(t, "")
	require.ErrorContains(t, err, "keep the key now")
	require.NotNil(t, reg)
	assert.Equal(t, "ak_EXAMPLE_NEW", reg.APIKey.Reveal())
	assert.NotContains(t, err.Error(), "ak_EXAMPLE_NEW")
}

func TestManyAtOnceSendOneRequest(t *testing.T) {
	r := newRegistrar(t, reply(201, jsonType, registered))
	var wg sync.WaitGroup
	keys := make([]string, 8)
	for i := range keys {
		wg.Go(func() {
			if reg, err := r.register(t, "Example"); assert.NoError(t, err) {
				keys[i] = reg.APIKey.Reveal()
			}
		})
	}
	wg.Wait()
	assert.Len(t, r.bodies, 1)
	for _, key := range keys {
		assert.Equal(t, "ak_EXAMPLE_NEW", key)
	}
}

func TestWaitingForAnotherRegistrationEndsWithTheContext(t *testing.T) {
	r := newRegistrar(t, reply(201, jsonType, registered))
	require.NoError(t, os.MkdirAll(filepath.Dir(r.file), 0o700))
	other := flock.New(r.file + ".lock")
	ok, err := other.TryLock()
	require.NoError(t, err)
	require.True(t, ok)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = r.Register(ctx, RegisterOptions{File: r.file})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, r.bodies)
	require.NoError(t, other.Close())
	_, err = r.register(t, "")
	assert.NoError(t, err)
}

func TestACutConnectionOnARealSocketIsSentOnce(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	c := clientOf(t, server.URL, nil)
	_, err := c.Register(t.Context(), RegisterOptions{File: filepath.Join(t.TempDir(), "s", "registration.json")})
	assert.ErrorIs(t, err, ErrUnreachable)
	assert.Equal(t, int32(1), requests.Load())
}

func TestOldRefusalsMakeRoom(t *testing.T) {
	f := &registrationFile{}
	for i := range 2 * maxKeptAttempts {
		a := f.begin(time.Unix(int64(i), 0))
		if a.Status = 503; i == 3 {
			a.Status = 201
		}
	}
	assert.Len(t, f.Attempts, maxKeptAttempts)
	assert.Equal(t, 201, f.Attempts[0].Status, "a success is kept")
}

func TestUselessAnswersDoNotFillTheFile(t *testing.T) {
	r := newRegistrar(t, reply(200, jsonType, strings.Repeat("<", 1<<19)))
	for range 30 {
		_, err := r.Register(t.Context(), RegisterOptions{File: r.file})
		require.Error(t, err)
	}
	info, err := os.Stat(r.file)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1<<20))
	_, err = LoadRegistration(r.file)
	require.NoError(t, err, "it stays readable")
}
