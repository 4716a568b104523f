package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// Limits of logins that clients carry out.
const (
	attemptTime = 10 * time.Minute // from the address to the end
	maxAttempts = 16               // in progress in the daemon
)

// Errors of logins that clients carry out.
var (
	ErrNoServer   = errors.New("there is no MCP server")
	ErrNoAttempt  = errors.New("there is no such login in progress; begin a new one")
	ErrNoLogin    = errors.New("lashd does not log in to this server")
	ErrRedirect   = errors.New("must be absent or an address such as http://127.0.0.1:PORT/callback")
	ErrManyLogins = errors.New("too many logins are in progress; finish one, or wait ten minutes")
)

// noServer returns ErrNoServer with the name of the server.
func noServer(name string) error {
	return fmt.Errorf("%w %s; lash mcp lists the servers", ErrNoServer, name)
}

// PastedError means that an address cannot finish a login. The login stays in progress.
type PastedError struct{ Why string }

func (e *PastedError) Error() string { return e.Why }

// LoginError means that a login has failed at the server or the authorization server.
type LoginError struct{ Err error }

func (e *LoginError) Error() string { return "the login failed: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *LoginError) Unwrap() error { return e.Err }

// Attempt is a login that a client carries out: it shows URL to a person, and passes on the address that the browser opens at the end.
// Only the daemon has the secret without which the code in that address is useless (PKCE).
type Attempt struct {
	ID       string
	URL      string // for the browser
	Redirect string // beginning of the address that the browser opens at the end
	Parties  protocol.LoginParties

	state  string // of URL: ties the address to this login
	server *server
	answer chan *auth.AuthorizationResult // holds one value
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the tokens are stored or the login failed
	err    error         // why it failed; read it after done
}

// BeginLogin starts a login to a server for a client. redirect is the address at which the client waits for the browser; empty: the person
// copies the address from the browser. It fails with ErrNoServer, ErrNoLogin, ErrRedirect or *LoginError.
func (p *Part) BeginLogin(ctx context.Context, name, redirect string) (*Attempt, error) {
	m := p.member(name)
	switch {
	case m == nil:
		return nil, noServer(name)
	case m.server.login == nil:
		return nil, fmt.Errorf("%w: it is a program, or its settings have an Authorization header", ErrNoLogin)
	case redirect == "":
		redirect = callback
	case !loopback(redirect):
		return nil, ErrRedirect
	}
	c, err := m.server.challenged(ctx)
	if err != nil {
		return nil, err
	}
	return p.pool.begin(ctx, m.server, c, redirect)
}

// member returns the server of a name; nil: none.
func (p *Part) member(name string) *member {
	for _, m := range p.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// loopback reports whether an address belongs to this machine, as RFC 8252 wants it for programs.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Path != "/callback" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Port() == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// challenged returns what the server answered to a request without a login. A server with a login gets a request for a new one.
func (s *server) challenged(ctx context.Context) (*challenge, error) {
	_, err := s.ready(ctx)
	if c := s.login.needed(); c != nil {
		return c, nil
	}
	at, parsed := url.Parse(s.end.URL)
	switch {
	case parsed != nil || err != nil && s.login.account.current() == nil:
		return nil, &LoginError{s.clean(errors.Join(parsed, err))}
	case s.login.account.current() == nil:
		return nil, fmt.Errorf("%w: it works without one", ErrNoLogin)
	}
	return &challenge{at, http.StatusUnauthorized, http.Header{}}, nil
}

// begin starts the login and waits until its address is known.
func (p *Pool) begin(ctx context.Context, s *server, c *challenge, redirect string) (*Attempt, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a := &Attempt{ID: rand.Text(), Redirect: redirect, server: s, answer: make(chan *auth.AuthorizationResult, 1), cancel: cancel, done: make(chan struct{})}
	if err := p.enlist(a); err != nil {
		cancel(err)
		return nil, err
	}
	shown := make(chan struct{})
	s.goes(func() { a.run(life, c, shown) })
	select {
	case <-shown:
		return a, nil
	case <-a.done:
		return nil, a.err
	case <-ctx.Done():
		cancel(context.Cause(ctx))
		return nil, context.Cause(ctx)
	}
}

// enlist registers an attempt. It replaces an earlier one for the same server.
func (p *Pool) enlist(a *Attempt) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, other := range p.attempts {
		if other.server == a.server {
			other.cancel(errors.New("a newer login replaced it"))
			delete(p.attempts, id)
		}
	}
	if len(p.attempts) >= maxAttempts {
		return ErrManyLogins
	}
	p.attempts[a.ID] = a
	return nil
}

// run carries the login out and closes shown when URL is set.
func (a *Attempt) run(ctx context.Context, c *challenge, shown chan<- struct{}) {
	ctx, late := context.WithTimeoutCause(ctx, attemptTime, child.ErrLate)
	defer late()
	show := func(ctx context.Context, p page) (*auth.AuthorizationResult, error) {
		a.URL, a.state, a.Parties = p.address, p.state, p.parties
		close(shown)
		select {
		case result := <-a.answer:
			return result, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := a.server.login.authorize(ctx, c.request(), c.response(), a.Redirect, show); err != nil {
		a.err = &LoginError{a.server.clean(err)}
	}
	close(a.done)
	a.server.pool.retire(a.ID)
}

// retire forgets an attempt.
func (p *Pool) retire(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.attempts, id)
}

// FinishLogin passes on the address that the browser opened, and waits until the tokens are stored and the server has been tried. It
// fails with ErrNoAttempt, *PastedError or *LoginError.
func (p *Pool) FinishLogin(ctx context.Context, id, address string) error {
	p.mu.Lock()
	a := p.attempts[id]
	p.mu.Unlock()
	if a == nil {
		return ErrNoAttempt
	}
	result, err := returned(address, a.Redirect)
	if err == nil && result.State != a.state {
		err = &PastedError{"the address belongs to another login; open the newest link"}
	}
	if err != nil {
		return err
	}
	select {
	case a.answer <- result:
	default: // it was answered before
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if a.err != nil {
		return a.err
	}
	return a.server.loggedIn(ctx)
}

// abandon ends the login to a server that closes.
func (p *Pool) abandon(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, a := range p.attempts {
		if a.server == s {
			a.cancel(child.ErrShutDown)
			delete(p.attempts, id)
		}
	}
}

// CancelLogin ends a login in progress. A login that has ended is no error.
func (p *Pool) CancelLogin(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.attempts[id]; a != nil {
		a.cancel(context.Canceled)
		delete(p.attempts, id)
	}
}

// loggedIn connects with the new tokens. The users fetch the tools again.
func (s *server) loggedIn(ctx context.Context) error {
	s.login.settled()
	s.super.Resume()
	_, err := s.ready(ctx)
	s.tell(context.WithoutCancel(ctx))
	if err != nil {
		return &LoginError{fmt.Errorf("the tokens are stored, but the server does not work with them: %w", s.clean(err))}
	}
	return nil
}

// Logout deletes the login to a server and reports whether there was one. The connection ends, so that no later request uses the tokens.
func (p *Part) Logout(ctx context.Context, name string) (had bool, err error) {
	m := p.member(name)
	if m == nil {
		return false, noServer(name)
	}
	if m.server.login == nil {
		return false, nil
	}
	if had, err = m.server.login.account.forget(ctx); err != nil || !had {
		return had, err
	}
	for _, s := range append(m.variants.servers(), m.server) {
		if l, _ := s.super.Look(); l != nil {
			l.expire()
		}
		s.retry(ctx)
	}
	return true, nil
}

// returned reads the code from the address that the browser opened at the end of a login.
func returned(address, redirect string) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || !strings.HasPrefix(u.String(), redirect) {
		return nil, &PastedError{fmt.Sprintf("the pasted address does not start with %s; copy the address that the browser shows after the login", redirect)}
	}
	q := u.Query()
	if why := q.Get("error"); why != "" {
		return nil, &LoginError{errors.New(cut(strings.TrimSpace(why+" "+q.Get("error_description")), maxMessage))}
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}
