package agentjob

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
)

// ErrAdminSession: the platform refused the admin session (401, 403): it is over, or its
// user is no admin. It says nothing about the provider key.
var ErrAdminSession = errors.New("the admin session was refused")

// An AdminSession is a signed-in admin of the platform's website.
type AdminSession struct {
	// Cookie is the value of the Cookie header that the admin's browser sends, such as
	// "name=value; other=value". No source tells the cookie's name, so that nothing is made up here.
	Cookie secret.Secret
}

// A RegistrationQuota is how many agents may still register today. A nil field was not told.
// It counts admissions, not wallets: a registration that failed later has used it.
type RegistrationQuota struct {
	Enabled   *bool  // whether registration is switched on
	Date      string // the UTC day that is counted, as the platform writes it
	Used      *int64
	Limit     *int64
	Remaining *int64
	Raw       json.RawMessage // the whole answer
}

// RegistrationQuota reads the platform's registration quota, for its admins only. It is no
// route for providers: the session is sent and the provider key never is, so the client needs none.
// Its error never quotes the platform.
func (c *Client) RegistrationQuota(ctx context.Context, session AdminSession) (*RegistrationQuota, error) {
	if err := session.check(c); err != nil {
		return nil, err
	}
	quota, err := ask(ctx, c, inquiry{
		op: opQuota, method: "GET", path: "/api/register/auto/quota", anonymous: true, mute: true,
		header: http.Header{"Cookie": {session.Cookie.Reveal()}},
	}, func(a *httpx.Answer) (*RegistrationQuota, error) { return decodeQuota(a.Body) })
	if e, ok := errors.AsType[*APIError](err); ok && (e.Kind == ErrUnauthorized || e.Kind == ErrForbidden) {
		e.Kind = ErrAdminSession
	}
	return quota, err
}

func (s AdminSession) check(c *Client) error {
	cookie := s.Cookie.Reveal()
	switch key := c.key.Reveal(); {
	case key != "" && strings.Contains(cookie, key):
		return invalid("Cookie", "holds the provider key, which is no admin session")
	case !strings.Contains(cookie, "="), !printable(strings.ReplaceAll(cookie, " ", "")):
		return invalid("Cookie", `must be a Cookie header's value, such as "name=value"`)
	}
	return nil
}
