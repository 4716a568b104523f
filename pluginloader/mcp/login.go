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

// callback is where a person's browser is sent after the login. Nobody listens there, and no ordinary program can: the port is privileged. The
// person copies the address, which has the code.
const callback = "http://127.0.0.1:999/callback"

// login gets tokens for one server by OAuth: a person is asked, in the call that needs a token. Tokens are in memory only. It implements
// auth.OAuthHandler, and may be used by several goroutines at once.
type login struct {
	server *server
	flow   *auth.AuthorizationCodeHandler
	asking chan struct{} // has a value while a person is asked

	mu     sync.Mutex
	wanted *challenge // nil: the server has not refused a request that no call has made
}

// challenge is how a server has refused a request for want of a token.
type challenge struct {
	url    *url.URL
	status int
	header http.Header
}

var errLogin = errors.New("requires a login; call its tool authorize")

// newLogin makes the login of a server; nil, if it has a program or its configuration has a token already.
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
		s.warn("login is not possible: " + err.Error())
		return nil
	}
	l.flow = flow
	return l
}

// TokenSource implements auth.OAuthHandler.
func (l *login) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return l.flow.TokenSource(ctx)
}

// Authorize implements auth.OAuthHandler. A request of a call has a person asked; any other fails, and is noted.
func (l *login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if c, ok := req.Context().Value(inflightKey{}).(*inflight); ok {
		return l.renew(context.WithValue(ctx, inflightKey{}, c), req, resp)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden && !strings.Contains(resp.Header.Get("WWW-Authenticate"), "insufficient_scope") {
		return nil // a login would not help; it is refused again
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

// renew asks a person once for all calls that wait for a token.
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
			return nil // another call has one meanwhile
		}
	}
	return l.flow.Authorize(ctx, req, resp)
}

// run asks a person for what the server wanted last. The context has the call that asks.
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

// enter waits until no other call asks a person.
func (l *login) enter(ctx context.Context) (leave func(), err error) {
	select {
	case l.asking <- struct{}{}:
		return func() { <-l.asking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// settled notes that the server wants nobody to log in any more, and tells whether it did. A nil login never does.
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

// needed is what the server wants a person for; nil: nothing. A nil login needs nothing.
func (l *login) needed() *challenge {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted
}

// loginForm is what a person answers.
var loginForm = json.RawMessage(`{"type":"object","properties":{"address":{"type":"string","title":"Address of the page"}},"required":["address"]}`)

// fetch has a person log in, and gets the code from the address that the browser was sent to.
func (l *login) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	c, _ := ctx.Value(inflightKey{}).(*inflight)
	if c == nil || c.Host == nil {
		return nil, errLogin
	}
	at, err := url.Parse(args.URL)
	if err != nil || !trusted(at, l.server.end.URL) {
		return nil, errors.New("the address of its login page is not https")
	}
	answer, err := c.ask(ctx, tool.Question{Form: loginForm, Prompt: fmt.Sprintf(
		"The MCP server %s wants you to log in at %s. Open the address below in a browser and log in. The browser then goes to a page at %s that it cannot show: answer with the address of that page.\n\n%s",
		l.server.end.label, at.Host, callback, args.URL)})
	switch {
	case err != nil:
		return nil, err
	case answer.Choice != protocol.ChooseAnswer:
		return nil, errors.New("nobody logged in")
	}
	return loggedIn(answer.Value)
}

// loggedIn is what the address says that a person was sent to after the login.
func loggedIn(value json.RawMessage) (*auth.AuthorizationResult, error) {
	var filled struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal(value, &filled); err != nil {
		return nil, errors.New("the answer to the login has no address")
	}
	u, err := url.Parse(strings.TrimSpace(filled.Address))
	if err != nil || !strings.HasPrefix(u.String(), callback) {
		return nil, fmt.Errorf("the answer to the login is not the address of the page after it, which begins with %s", callback)
	}
	q := u.Query()
	if why := q.Get("error"); why != "" {
		return nil, fmt.Errorf("the login was refused: %s", cut(why+" "+q.Get("error_description"), maxMessage))
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}
