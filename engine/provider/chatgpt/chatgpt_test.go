package chatgpt_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine/provider"
	"lashd/engine/provider/chatgpt"
	"lashd/engine/provider/keystore"
	"lashd/test/fakemodel"
)

// mark is in each token, to search for.
const mark = "canary5d1e7c"

// place is an authorization server, and a data directory for logins.
type place struct {
	*fakemodel.Login
	t      *testing.T
	url    string
	server *chatgpt.Server
	store  *keystore.Store
}

func newPlace(t *testing.T, login *fakemodel.Login) *place {
	t.Helper()
	login.Mark = mark
	s := httptest.NewServer(login)
	t.Cleanup(s.Close)
	ring := keystore.NewKeyring(func(string) string { return "off" })
	return &place{login, t, s.URL, chatgpt.NewServer(s.URL), keystore.New(filepath.Join(t.TempDir(), "data"), ring)}
}

// browse opens a login in a browser and returns the address that it goes to.
func (p *place) browse(address string) string {
	p.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		p.t.Fatalf("GET %s: %s", address, resp.Status)
	}
	return resp.Header.Get("Location")
}

// login logs in and stores the tokens.
func (p *place) login() *chatgpt.Account {
	p.t.Helper()
	l := p.server.Begin()
	tokens, err := l.Finish(p.t.Context(), p.browse(l.URL))
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.store.Set(p.t.Context(), "chatgpt", tokens.Secret()); err != nil {
		p.t.Fatal(err)
	}
	return p.account()
}

// account is the login as a new process finds it.
func (p *place) account() *chatgpt.Account { return chatgpt.NewAccount(p.server, p.store, "chatgpt") }

// access returns the access token that a call would carry.
func (p *place) access(a *chatgpt.Account) string {
	p.t.Helper()
	key, err := a.Key(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	tokens, err := chatgpt.Parse(key)
	if err != nil {
		p.t.Fatal(err)
	}
	return tokens.Access.Reveal()
}

// expire makes the stored access token end now.
func (p *place) expire() {
	p.t.Helper()
	_, err := p.store.Update(p.t.Context(), "chatgpt", func(_ context.Context, key provider.Secret) (provider.Secret, error) {
		tokens, err := chatgpt.Parse(key)
		tokens.Expires = time.Now()
		return tokens.Secret(), err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// renewed fails the test unless the server has accepted and refused so many refresh tokens.
func (p *place) renewed(accepted, refused int) {
	p.t.Helper()
	if a, r := p.Renewals(); a != accepted || r != refused {
		p.t.Errorf("%d renewals and %d refusals, want %d and %d", a, r, accepted, refused)
	}
}

func TestLogin(t *testing.T) {
	t.Run("runtime/M06 the pasted address of the browser gives tokens, with the account and their end", func(t *testing.T) {
		p := newPlace(t, &fakemodel.Login{})
		l := p.server.Begin()
		tokens, err := l.Finish(t.Context(), p.browse(l.URL)+"\n")
		if err != nil || tokens.Account != fakemodel.LoginAccount || !strings.Contains(tokens.Access.Reveal(), mark) || tokens.Refresh == (provider.Secret{}) {
			t.Errorf("account %q, access %v, refresh %v: %v", tokens.Account, tokens.Access, tokens.Refresh, err)
		}
		if left := time.Until(tokens.Expires); left < 55*time.Minute || left > time.Hour+time.Second {
			t.Errorf("the tokens end in %s", left)
		}
	})
	t.Run("runtime/M06 a code that was entered elsewhere gives tokens", func(t *testing.T) {
		p := newPlace(t, &fakemodel.Login{})
		d, err := p.server.BeginDevice(t.Context())
		if err != nil || d.URL != p.url+"/codex/device" || d.Code != fakemodel.DeviceCode {
			t.Fatalf("%+v, %v", d, err)
		}
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(p.Enter)
		if tokens, err := d.Wait(t.Context()); err != nil || tokens.Account != fakemodel.LoginAccount {
			t.Errorf("account %q, %v", tokens.Account, err)
		}
	})
	p := newPlace(t, &fakemodel.Login{})
	l := p.server.Begin()
	other := p.server.Begin()
	for name, c := range map[string]struct{ address, reason string }{
		"runtime/M06 an address of another page is refused":  {"https://example.org/?code=x", "does not start with http://localhost:1455"},
		"runtime/M06 an address of another login is refused": {p.browse(other.URL), "belongs to another login"},
		"runtime/M06 a refused login is reported":            {l.Redirect + "?error=access_denied", "the login failed: access_denied"},
		"runtime/M06 a code that is not known is refused":    {strings.Replace(p.browse(l.URL), "code="+"code-", "code=other-", 1), "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.Finish(t.Context(), c.address)
			if err == nil || !strings.Contains(err.Error(), c.reason) || strings.Contains(err.Error(), mark) {
				t.Errorf("%v, want %q", err, c.reason)
			}
		})
	}
}

func TestRenewal(t *testing.T) {
	t.Run("runtime/M06 many calls at once share one renewal, in this process and in others", func(t *testing.T) {
		p := newPlace(t, &fakemodel.Login{Pause: 20 * time.Millisecond})
		accounts := []*chatgpt.Account{p.login(), p.account(), p.account()}
		old, used := p.access(p.account()), sync.Map{}
		p.expire()
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() { used.Store(p.access(accounts[i%len(accounts)]), true) })
		}
		wg.Wait()
		p.renewed(1, 0)
		n := 0
		used.Range(func(any, any) bool { n++; return true })
		if _, before := used.Load(old); n != 1 || before {
			t.Errorf("%d access tokens, the old one among them: %v; want one new one", n, before)
		}
	})
	t.Run("runtime/M06 a new refresh token is on disk before its access token is used", func(t *testing.T) {
		p := newPlace(t, &fakemodel.Login{})
		a := p.login()
		p.expire()
		access := p.access(a)
		p.renewed(1, 0)
		data, err := os.ReadFile(p.store.Path())
		if err != nil || !strings.Contains(string(data), access) {
			t.Errorf("keys.json lacks the access token that is used: %v", err)
		}
	})
	t.Run("runtime/M06 a login that the server ended says to log in again, and asks the server once", func(t *testing.T) {
		p := newPlace(t, &fakemodel.Login{Lifetime: -time.Minute})
		a := p.login()
		p.Revoke(true)
		for range 3 {
			_, err := a.Key(t.Context())
			failure, ok := errors.AsType[*provider.Error](err)
			if !ok || failure.Code != "login_expired" || failure.Retryable || !strings.Contains(failure.Message, "log in again: lash login chatgpt") || strings.Contains(failure.Message, mark) {
				t.Errorf("%v", err)
			}
		}
		p.renewed(0, 1)
	})
	t.Run("runtime/M06 tokens that are still valid are used while the server cannot renew them", func(t *testing.T) {
		p := newPlace(t, &fakemodel.Login{Lifetime: time.Minute})
		a := p.login()
		p.Revoke(true)
		if got := p.access(a); !strings.Contains(got, mark) {
			t.Errorf("access token %q", got)
		}
	})
}
