package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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

// login logs a person in to one server. It asks during the call that needs it. If a request outside a call needs a login, for example at
// startup, it records a challenge, and the server offers only the authorize tool until a person has logged in. A client can carry out a
// login too. The tokens belong to the account. It implements auth.OAuthHandler and is safe for concurrent use.
type login struct {
	server  *server
	account *account
	asking  chan struct{} // holds one value while a user is asked

	mu     sync.Mutex
	wanted *challenge // the last rejected request that no call can answer; nil: none
}

// challenge is a response in which a server asked for a login.
type challenge struct {
	url    *url.URL
	status int
	header http.Header
}

// request returns a request like the one that was rejected.
func (c *challenge) request() *http.Request {
	return &http.Request{Method: http.MethodPost, URL: c.url, Header: http.Header{}}
}

// response returns the answer to it.
func (c *challenge) response() *http.Response {
	return &http.Response{StatusCode: c.status, Header: c.header, Body: http.NoBody}
}

// errLogin rejects requests that need a token outside a call. The model reads it.
var errLogin = errors.New("requires a login; run lash mcp login, or call its tool authorize")

// newLogin returns the login of a server. The caller holds the pool's mu. It returns nil for a program, for a server whose
// configured headers already contain a token, and for one on another machine without TLS, where others could read the tokens.
func newLogin(s *server) *login {
	at, err := url.Parse(s.end.URL)
	if s.end.URL == "" || err != nil || !trusted(at, s.end.URL) {
		return nil
	}
	for name := range s.end.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	return &login{server: s, account: s.pool.accountLocked(s.end.URL), asking: make(chan struct{}, 1)}
}

// page is the page at which a person logs in.
type page struct {
	address string
	state   string // ties the answer to the address
	parties protocol.LoginParties
}

// shower shows a page to a person, and returns what the browser brought back.
type shower func(context.Context, page) (*auth.AuthorizationResult, error)

// authorize carries out a login by the library: it finds the authorization server, registers lashd, and exchanges the code that show
// returns. The account keeps the result.
func (l *login) authorize(ctx context.Context, req *http.Request, resp *http.Response, redirect string, show shower) error {
	watch := &witness{base: l.account.client.Transport}
	client, resource := *l.account.client, ""
	client.Transport = watch
	fetch := func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		at, err := url.Parse(args.URL)
		if err != nil || !trusted(at, l.server.end.URL) {
			return nil, errors.New("its login page does not use https")
		}
		if named := at.Query()["resource"]; len(named) > 0 {
			resource = named[len(named)-1] // earlier ones are of the endpoint
		}
		return show(ctx, page{args.URL, at.Query().Get("state"), watch.parties(req.URL, at)})
	}
	flow, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: l.client(), DynamicClientRegistrationConfig: registration(redirect), RedirectURL: redirect, AuthorizationCodeFetcher: fetch, RequestRefreshToken: true, Client: &client,
		ScopeFilter: l.withGranted,
		NewTokenSource: func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			return oauth2.StaticTokenSource(t), l.account.keep(context.WithoutCancel(ctx), granted(c, t, resource))
		},
	})
	if err != nil {
		resp.Body.Close()
		return err
	}
	return unquoted(flow.Authorize(ctx, req, resp))
}

// client returns the client that the configuration has for logins; nil: none.
func (l *login) client() *oauthex.ClientCredentials {
	c := l.server.end.Client
	if c.ID == "" {
		return nil
	}
	known := &oauthex.ClientCredentials{ClientID: c.ID}
	if c.Secret != "" {
		known.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: c.Secret}
	}
	return known
}

// registration is what lashd says about itself to an authorization server if the configuration has no client.
func registration(redirect string) *auth.DynamicClientRegistrationConfig {
	return &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "lashd", RedirectURIs: []string{redirect},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}
}

// withGranted adds the scopes that the account has to those that the server asks for, so that a login for more rights keeps the old ones.
func (l *login) withGranted(wanted []string) []string {
	if g := l.account.current(); g != nil {
		for _, scope := range g.Scopes {
			if !slices.Contains(wanted, scope) {
				wanted = append(wanted, scope)
			}
		}
	}
	return wanted
}

// granted returns what a login for a resource has brought. Without scopes in the answer, those that were asked for are granted.
func granted(c *oauth2.Config, t *oauth2.Token, resource string) *grants {
	g := &grants{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, AuthStyle: c.Endpoint.AuthStyle, Resource: resource, Scopes: c.Scopes,
		Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry,
	}
	if scope, ok := t.Extra("scope").(string); ok {
		g.Scopes = strings.Fields(scope)
	}
	return g
}

// TokenSource implements auth.OAuthHandler. Without a login it returns nil, and the server answers with a challenge.
func (l *login) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	t, err := l.account.token(ctx)
	if err != nil || t == nil {
		return nil, err
	}
	return oauth2.StaticTokenSource(t), nil
}

// Authorize implements auth.OAuthHandler. It renews tokens that the server refuses. If that does not help and the request belongs to a
// call, it asks the user. Otherwise it records the challenge, which makes the authorize tool appear, and fails.
func (l *login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized {
		if again, err := l.account.refused(ctx, req.Header.Get("Authorization")); again || err != nil {
			resp.Body.Close()
			return err
		}
	}
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
	if g := l.account.current(); g != nil && req.Header.Get("Authorization") != "Bearer "+g.Access {
		resp.Body.Close()
		return nil // another call has obtained a token
	}
	return l.authorize(ctx, req, resp, callback, l.ask)
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
	if err := l.authorize(ctx, c.request(), c.response(), callback, l.ask); err != nil {
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

// state says whether a login is needed or there. It accepts a nil login.
func (l *login) state() protocol.ServerLogin {
	switch {
	case l.needed() != nil:
		return protocol.LoginNeeded
	case l != nil && l.account.current() != nil:
		return protocol.LoggedIn
	}
	return ""
}

// loginForm is the form of the user's answer.
var loginForm = json.RawMessage(`{"type":"object","properties":{"address":{"type":"string","title":"Address of the page"}},"required":["address"]}`)

// ask asks the user to log in and returns the code from the address that the user copied. ctx has the call that asks. Without such a call
// it fails with errLogin.
func (l *login) ask(ctx context.Context, p page) (*auth.AuthorizationResult, error) {
	c, _ := ctx.Value(inflightKey{}).(*inflight)
	if c == nil || c.Host == nil {
		return nil, errLogin
	}
	answer, err := c.ask(ctx, tool.Question{Form: loginForm, Prompt: fmt.Sprintf(
		"The MCP server %s requires a login.\n\n%s\n\nOpen the address below in a browser and log in. The browser then opens a page at %s that it cannot load. Copy the address of that page and paste it here.\n\n%s",
		l.server.end.label, p.parties, callback, p.address)})
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
		return nil, errors.New("the answer has no address; paste the address of the page that the browser could not load")
	}
	return returned(filled.Address, callback)
}
