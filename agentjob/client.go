package agentjob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
)

// DefaultBaseURL is where the platform is.
const DefaultBaseURL = "https://agent-job.ai"

const defaultUserAgent = "agentjob-go"

// ClientConfig says where the platform is and who asks. Its zero value is enough to
// register.
type ClientConfig struct {
	// APIKey is the provider key. Without it only Register works; every other
	// operation returns [ErrUnauthorized] and sends nothing.
	APIKey secret.Secret

	// BaseURL is the platform, [DefaultBaseURL] if empty. It may have a path, below
	// which all routes then are, but no user, query or fragment. The key travels
	// readable over http: use that for tests only.
	BaseURL string

	// HTTPClient gives the transport (proxies, certificates, tracing) and the cookie
	// jar. Its Timeout and CheckRedirect are not used: every operation has its own
	// time, and redirects are refused. It is not changed. Nil: a transport like Go's
	// default one, with the proxy of the environment.
	HTTPClient *http.Client

	UserAgent string       // header of every request; default "agentjob-go"
	Logger    *slog.Logger // level debug: operation, status, duration, attempt; nil: silent
}

// A Client speaks the platform's provider API. It is safe for concurrent use.
//
// Every operation is bounded in time and in the size of its answer, and is sent again
// after a transient fault only where that is harmless; the Client's errors are
// [*APIError] for what the platform or the network did, and [*ValidationError] for
// what was refused here and not sent.
type Client struct {
	key      secret.Secret
	base     string
	http     *httpx.Client
	attempts int // at most, whatever an operation's policy says; 0: the policy
}

// NewClient checks cfg and returns a client. It sends nothing.
func NewClient(cfg ClientConfig) (*Client, error) {
	base, err := parseBaseURL(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("agentjob: client configuration: %w", err)
	}
	if !printable(cfg.APIKey.Reveal()) {
		return nil, fmt.Errorf("agentjob: client configuration: %w", invalid("APIKey", "has spaces or characters that no key has; was a whole line or file taken?"))
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = defaultUserAgent
	}
	if !printable(strings.ReplaceAll(cfg.UserAgent, " ", "")) {
		return nil, fmt.Errorf("agentjob: client configuration: %w", invalid("UserAgent", "has characters that a header can't have"))
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Client{
		key:  cfg.APIKey,
		base: strings.TrimRight(base.String(), "/"),
		http: httpx.New(base, cfg.HTTPClient, cfg.UserAgent, cfg.Logger),
	}, nil
}

func parseBaseURL(text string) (*url.URL, error) {
	if text == "" {
		text = DefaultBaseURL
	}
	base, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, invalid("BaseURL", "is no URL") // err quotes it, with a password if there is one
	case base.Scheme != "https" && base.Scheme != "http", base.Hostname() == "":
		return nil, invalid("BaseURL", "needs a scheme and a host, as in https://agent-job.ai")
	case base.User != nil, base.RawQuery != "", base.ForceQuery, base.Fragment != "":
		return nil, invalid("BaseURL", "must have no user, query or fragment")
	}
	base.Host = strings.ToLower(base.Host)
	return base, nil
}

// printable reports whether text is visible ASCII.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// BaseURL returns the platform's URL, without a slash at its end.
func (c *Client) BaseURL() string { return c.base }

// CloseIdleConnections closes connections that are kept for later requests. The
// client stays usable.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// once returns a client of which every call makes one attempt.
func (c *Client) once() *Client {
	single := *c
	single.attempts = 1
	return &single
}

// KeyFingerprint tells keys and platforms apart without telling them: 32 hexadecimal digits. It is what
// [Store].Provider and BindProvider take.
func (c *Client) KeyFingerprint() string {
	sum := sha256.New()
	for _, part := range []string{"agentjob key fingerprint", c.base, c.key.Reveal()} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:32]
}
