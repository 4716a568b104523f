package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// callback is the redirect address for logins. The browser cannot load it: the port is privileged,
// so no ordinary program listens there and intercepts the code. The user copies the address, which
// contains the code.
const callback = "http://127.0.0.1:999/callback"

// login gets OAuth tokens for one server. It asks the user during the call that needs a token. If a
// request outside a call needs one, for example at startup, it records a challenge, and the server
// offers only the authorize tool until a user has logged in. Tokens stay in memory and are lost
// with the daemon. It implements auth.OAuthHandler and is safe for concurrent use.
type login struct {
	server *server
	flow   *auth.AuthorizationCodeHandler // gets, refreshes and holds the token
	asking chan struct{}                  // holds one value while a user is asked

	mu     sync.Mutex
	wanted *challenge // the last rejected request that no call can answer; nil: none
}

// challenge is a response in which a server asked for a login.
type challenge struct {
	url    *url.URL
	status int
	header http.Header
}

// errLogin rejects requests that need a token outside a call. The model reads it.
var errLogin = errors.New("requires a login; call its tool authorize")

// newLogin returns the login of a server. It returns nil for a program, and for a server whose
// configured headers already contain a token.
func newLogin(s *server) *login {
	if s.end.URL == "" {
		return nil
	}
	for name := range s.end.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	l := &login{server: s, asking: make(chan struct{}, 1)}
	flow, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "lashd", RedirectURIs: []string{callback},
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		AuthorizationCodeFetcher: l.fetch, RequestRefreshToken: true, Client: loginClient(s.end.URL),
	})
	if err != nil {
		s.warn("login is not available: " + err.Error())
		return nil
	}
	l.flow = flow
	return l
}

// TokenSource implements auth.OAuthHandler.
func (l *login) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return l.flow.TokenSource(ctx)
}

// Authorize implements auth.OAuthHandler. If the request belongs to a call, it asks the user.
// Otherwise it records the challenge, which makes the authorize tool appear, and fails.
func (l *login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if c, ok := req.Context().Value(inflightKey{}).(*inflight); ok {
		return l.renew(context.WithValue(ctx, inflightKey{}, c), req, resp)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden && !strings.Contains(resp.Header.Get("WWW-Authenticate"), "insufficient_scope") {
		return nil // a login would not help: the server rejects the user's rights
	}
	l.mu.Lock()
	before := l.wanted
	l.wanted = &challenge{req.URL, resp.StatusCode, resp.Header.Clone()}
	l.mu.Unlock()
	if before == nil {
		l.server.tell(context.WithoutCancel(ctx))
	}
	return errLogin
}

// renew gets a token for a request. Calls that need a token at the same time ask the user once.
func (l *login) renew(ctx context.Context, req *http.Request, resp *http.Response) error {
	leave, err := l.enter(ctx)
	if err != nil {
		resp.Body.Close()
		return err
	}
	defer leave()
	if source, err := l.flow.TokenSource(ctx); err == nil && source != nil {
		if token, err := source.Token(); err == nil && req.Header.Get("Authorization") != "Bearer "+token.AccessToken {
			resp.Body.Close()
			return nil // another call has obtained a token
		}
	}
	return l.flow.Authorize(ctx, req, resp)
}

// run asks the user to answer the last challenge. ctx carries the call that asks.
func (l *login) run(ctx context.Context) error {
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	c := l.needed()
	if c == nil {
		return nil
	}
	req := &http.Request{Method: http.MethodPost, URL: c.url, Header: http.Header{}}
	if err := l.flow.Authorize(ctx, req, &http.Response{StatusCode: c.status, Header: c.header, Body: http.NoBody}); err != nil {
		return err
	}
	l.settled()
	return nil
}

// enter waits until no other call asks the user, so that the user never sees two login questions
// for one server. The caller calls leave when done.
func (l *login) enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.asking <- struct{}{}:
		return func() { <-l.asking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// settled clears the challenge and reports whether there was one. It accepts a nil login.
func (l *login) settled() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	did := l.wanted != nil
	l.wanted = nil
	return did
}

// needed returns the challenge that a user has to answer; nil: none. It accepts a nil login.
func (l *login) needed() *challenge {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted
}

// loginForm is the form of the user's answer.
var loginForm = json.RawMessage(`{"type":"object","properties":{"address":{"type":"string","title":"Address of the page"}},"required":["address"]}`)

// fetch asks the user to log in and returns the code from the address that the user copied. It is
// called within auth's flow, with the call that asks in ctx. Without such a call it fails with
// errLogin.
func (l *login) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	c, _ := ctx.Value(inflightKey{}).(*inflight)
	if c == nil || c.Host == nil {
		return nil, errLogin
	}
	at, err := url.Parse(args.URL)
	if err != nil || !trusted(at, l.server.end.URL) {
		return nil, errors.New("its login page does not use https")
	}
	answer, err := c.ask(ctx, tool.Question{Form: loginForm, Prompt: fmt.Sprintf(
		"The MCP server %s requires a login at %s. Open the address below in a browser and log in. The browser then opens a page at %s that it cannot load. Copy the address of that page and paste it here.\n\n%s",
		l.server.end.label, at.Host, callback, args.URL)})
	switch {
	case err != nil:
		return nil, err
	case answer.Choice != protocol.ChooseAnswer:
		return nil, errors.New("the login was cancelled")
	}
	return loggedIn(answer.Value)
}

// loggedIn reads the code from the address that the user pasted.
func loggedIn(value json.RawMessage) (*auth.AuthorizationResult, error) {
	var filled struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal(value, &filled); err != nil {
		return nil, errors.New("the answer has no address")
	}
	u, err := url.Parse(strings.TrimSpace(filled.Address))
	if err != nil || !strings.HasPrefix(u.String(), callback) {
		return nil, fmt.Errorf("the pasted address does not start with %s; copy the address that the browser shows after the login", callback)
	}
	q := u.Query()
	if why := q.Get("error"); why != "" {
		return nil, fmt.Errorf("the login failed: %s", cut(why+" "+q.Get("error_description"), maxMessage))
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}
