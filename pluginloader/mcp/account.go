package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
)

// account is the OAuth login at one address. All servers of the pool with that address share it. It stays in the key store until a
// person logs out or the authorization server ends it. One call renews the tokens; others wait for it. It is safe for concurrent use.
type account struct {
	name   string          // of the entry in the store
	store  *keystore.Store // nil: the login stays in memory
	client *http.Client
	flight singleflight.Group

	mu    sync.Mutex
	read  bool      // the store was read
	now   *grants   // nil: no login
	trial string    // access token of the newest renewal after a refusal
	tried time.Time // when that was
}

// grants is a login: tokens, and the registration of the client to which they belong. It never changes.
type grants struct {
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	TokenURL     string           `json:"tokenUrl"`
	AuthStyle    oauth2.AuthStyle `json:"authStyle"`
	Resource     string           `json:"resource,omitempty"` // for which the tokens are (RFC 8707)
	Scopes       []string         `json:"scopes,omitempty"`
	Access       string           `json:"access"`
	Refresh      string           `json:"refresh,omitempty"`
	Expires      time.Time        `json:"expires,omitzero"` // zero: unknown
}

// trialTime is how long tokens must be good for before lashd renews them after a refusal once more.
const trialTime = time.Minute

// accountTime bounds the wait for the key store together with one renewal.
const accountTime = 45 * time.Second

// accountLocked returns the account of an address. The caller holds mu.
func (p *Pool) accountLocked(address string) *account {
	name := accountName(address)
	if p.accounts[name] == nil {
		p.accounts[name] = &account{name: name, store: p.config.Logins, client: loginClient(address)}
	}
	return p.accounts[name]
}

// accountName returns the name of an address in the key store. It has the host for people, and no query, which may be secret.
func accountName(address string) string {
	sum := sha256.Sum256([]byte(address))
	host := "server"
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return host + " " + hex.EncodeToString(sum[:8])
}

// token returns the access token for a request; nil: there is no login, or it has ended.
func (a *account) token(ctx context.Context) (*oauth2.Token, error) {
	g, err := a.load(ctx)
	if err != nil || g == nil {
		return nil, err
	}
	if t := g.token(); t.Valid() {
		return t, nil
	}
	if g, err = a.renew(ctx, g); err != nil || g == nil {
		return nil, err
	}
	return g.token(), nil
}

// token returns the tokens in the library's form.
func (g *grants) token() *oauth2.Token {
	return &oauth2.Token{AccessToken: g.Access, RefreshToken: g.Refresh, Expiry: g.Expires, TokenType: "Bearer"}
}

// current returns the login in memory; nil: none.
func (a *account) current() *grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// load returns the login, and reads it from the store once.
func (a *account) load(ctx context.Context) (*grants, error) {
	a.mu.Lock()
	g, done := a.now, a.read || a.store == nil
	a.mu.Unlock()
	if done {
		return g, nil
	}
	return a.alone(ctx, "read", func(ctx context.Context) (*grants, error) {
		key, err := a.store.Key(ctx, a.name)
		if err != nil {
			return nil, err
		}
		return a.became(parseGrants(key)), nil
	})
}

// became stores a login in memory.
func (a *account) became(g *grants) *grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now, a.read = g, true
	return g
}

// renewed sets the tokens that replace older ones, unless a logout has come between. It returns the tokens that count now.
func (a *account) renewed(g *grants) *grants {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != nil {
		a.now = g
	}
	return a.now
}

// alone runs f once for all callers that ask for the same at the same time. If ctx ends first, f goes on: the server may have used up a
// refresh token, and only storing the new one saves the login.
func (a *account) alone(ctx context.Context, what string, f func(context.Context) (*grants, error)) (*grants, error) {
	done := a.flight.DoChan(what, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accountTime)
		defer cancel()
		return f(ctx)
	})
	select {
	case got := <-done:
		g, _ := got.Val.(*grants)
		return g, got.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// parseGrants reads an entry of the key store; nil: it has no login.
func parseGrants(key provider.Secret) *grants {
	g := &grants{}
	if json.Unmarshal([]byte(key.Reveal()), g) != nil || g.Access == "" {
		return nil
	}
	return g
}

// secret returns the entry for the key store.
func (g *grants) secret() provider.Secret {
	data, err := json.Marshal(g)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return provider.NewSecret(string(data))
}

// keep stores the login that a person has just made.
func (a *account) keep(ctx context.Context, g *grants) error {
	a.became(g)
	if a.store == nil {
		return nil
	}
	if _, err := a.store.Set(ctx, a.name, g.secret()); err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	return nil
}

// forget deletes the login and reports whether there was one.
func (a *account) forget(ctx context.Context) (had bool, err error) {
	had = a.current() != nil
	a.became(nil)
	if a.store == nil {
		return had, nil
	}
	stored, err := a.store.Delete(ctx, a.name)
	return had || stored, err
}

// errEnded means that the authorization server has ended the login.
var errEnded = errors.New("the login has ended")

// renew replaces the tokens of old, unless another call has done so. It returns nil if the login has ended; then it is deleted.
func (a *account) renew(ctx context.Context, old *grants) (*grants, error) {
	g, err := a.alone(ctx, "renew", func(ctx context.Context) (*grants, error) {
		if now := a.current(); now == nil || now.Access != old.Access {
			return now, nil
		}
		return a.replace(ctx, old)
	})
	if errors.Is(err, errEnded) {
		_, err = a.forget(context.WithoutCancel(ctx))
		return nil, err
	}
	return g, err
}

// replace gets new tokens and stores them.
func (a *account) replace(ctx context.Context, old *grants) (*grants, error) {
	if a.store == nil {
		g, err := a.refresh(ctx, old)
		if err != nil {
			return nil, err
		}
		return a.renewed(g), nil
	}
	key, err := a.store.Update(ctx, a.name, func(ctx context.Context, key provider.Secret) (provider.Secret, error) {
		g := parseGrants(key)
		if g == nil || g.Access != old.Access {
			return key, nil // another process has renewed it
		}
		newer, err := a.refresh(ctx, g)
		if err != nil {
			return key, err
		}
		return newer.secret(), nil
	})
	if err != nil {
		return nil, err
	}
	return a.renewed(parseGrants(key)), nil
}

// refresh asks the authorization server for new tokens. It fails with errEnded if the server says that the login has ended. Other failures,
// such as those of a proxy, leave the login for another attempt.
func (a *account) refresh(ctx context.Context, g *grants) (*grants, error) {
	if g.Refresh == "" {
		return nil, errEnded
	}
	t, err := g.renewal().Token(context.WithValue(ctx, oauth2.HTTPClient, a.client))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, refused.ErrorCode) {
		return nil, errEnded
	}
	if err != nil {
		return nil, fmt.Errorf("renew the login: %w", unquoted(err))
	}
	newer := *g
	newer.Access, newer.Refresh, newer.Expires = t.AccessToken, t.RefreshToken, t.Expiry
	return &newer, nil
}

// renewal returns the request for new tokens. The oauth2 package sends a resource (RFC 8707) only with this type, whose grant type can be
// replaced.
func (g *grants) renewal() *clientcredentials.Config {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}}
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	return &clientcredentials.Config{ClientID: g.ClientID, ClientSecret: g.ClientSecret, TokenURL: g.TokenURL, AuthStyle: g.AuthStyle, EndpointParams: form}
}

// refused reports whether a request that the server refused may be sent again: with tokens that another call has obtained, or with
// tokens that are renewed now. Tokens of a renewal that the server refuses too are not renewed again.
func (a *account) refused(ctx context.Context, sent string) (bool, error) {
	g, err := a.load(ctx)
	if err != nil || g == nil || sent == "" {
		return false, err
	}
	if "Bearer "+g.Access != sent {
		return true, nil
	}
	a.mu.Lock()
	again := a.trial == g.Access && time.Since(a.tried) < trialTime
	a.mu.Unlock()
	if again || g.Refresh == "" {
		return false, nil
	}
	newer, err := a.renew(ctx, g)
	if err != nil || newer == nil {
		return false, err
	}
	a.mu.Lock()
	a.trial, a.tried = newer.Access, time.Now()
	a.mu.Unlock()
	return true, nil
}

// unquoted returns an error of the authorization server without the text of its answer, which may contain tokens.
func unquoted(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return err
	}
	return fmt.Errorf("the authorization server answered %s", strings.TrimSpace(refused.Response.Status+" "+cut(refused.ErrorCode, 100)))
}
