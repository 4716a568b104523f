package cli

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lashd/cmd/internal/console"
	"lashd/engine/provider"
	"lashd/engine/provider/chatgpt"
	"lashd/engine/provider/keystore"
	"lashd/test/fakemodel"
)

// accountMark is in each token of a login.
const accountMark = "canary7d21b0e4"

// newAccountPlace returns a place whose preset chatgpt logs in at a server on loopback. before, if set, sees each call of the model server.
func newAccountPlace(t *testing.T, before func()) (*place, *fakemodel.Login) {
	t.Helper()
	login := &fakemodel.Login{Mark: accountMark}
	issuer, model := httptest.NewServer(login), login.Guard(fakemodel.New())
	t.Cleanup(issuer.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before()
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return newUser(t, "http://127.0.0.1:1/v1", "trace = true\n[providers.chatgpt]\nlogin = '"+issuer.URL+"'\nbase_url = '"+server.URL+"/backend-api/codex'\n"), login
}

// pageToOpen finds the address that a person opens to log in.
var pageToOpen = regexp.MustCompile(`https?://\S+/oauth/authorize\?\S+`)

// browserLogin runs lash login chatgpt, follows its address as a browser does and pastes what change makes of the address that follows.
func (p *place) browserLogin(change func(string) string, args ...string) result {
	p.t.Helper()
	var out bytes.Buffer
	cmd := p.command(append([]string{"login", "chatgpt"}, args...)...)
	cmd.Stdout = &out
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	shown, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	var errs strings.Builder
	lines := bufio.NewReader(shown)
	for at := ""; at == ""; at = pageToOpen.FindString(errs.String()) {
		line, err := lines.ReadString('\n')
		errs.WriteString(line)
		if err != nil {
			break
		}
	}
	if at := pageToOpen.FindString(errs.String()); at != "" {
		in.Write([]byte(change(p.redirected(at)) + "\n")) // a process that ended says why
	}
	in.Close()
	rest, _ := lines.ReadString(0)
	errs.WriteString(rest)
	return result{code: exitCode(p.t, cmd.Wait()), out: out.String(), err: errs.String()}
}

// redirected returns the address to which a server sends a browser.
func (p *place) redirected(at string) string {
	p.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(at)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header.Get("Location")
}

// expireLogin makes the stored access token end now.
func (p *place) expireLogin() {
	p.t.Helper()
	store := keystore.New(p.home, keystore.NewKeyring(func(string) string { return "off" }))
	_, err := store.Update(p.t.Context(), "chatgpt", func(_ context.Context, key provider.Secret) (provider.Secret, error) {
		tokens, err := chatgpt.Parse(key)
		tokens.Expires = time.Now()
		return tokens.Secret(), err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// unmarked fails the test if a file of the data directory other than keys.json has a token.
func (p *place) unmarked() {
	p.t.Helper()
	err := filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == keystore.File {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(accountMark)) {
			p.t.Errorf("runtime/M06 %s has a token", path)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestLoginToChatGPT(t *testing.T) {
	p, server := newAccountPlace(t, nil)
	same := func(address string) string { return address }
	p.want(console.ExitFailed, "", "no model is set up", "run", "hi") // starts the daemon
	pid := p.holder()
	t.Run("runtime/M06 an address that is cut short stores nothing", func(t *testing.T) {
		r := p.browserLogin(func(address string) string { return strings.Split(address, "?")[0] })
		if _, err := os.Stat(filepath.Join(p.home, keystore.File)); r.code != console.ExitFailed || !strings.Contains(r.err, "belongs to another login") || !os.IsNotExist(err) {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("runtime/M06 login stores the tokens, shows none of them, and the running daemon uses them at once", func(t *testing.T) {
		r := p.browserLogin(same)
		if r.code != 0 || !strings.Contains(r.out, "logged in to ChatGPT; the login is stored in "+filepath.Join(p.home, keystore.File)) || strings.Contains(r.out+r.err, accountMark) {
			t.Fatalf("%+v", r)
		}
		p.want(0, "ok\n", "", "run", "hi")
		p.want(0, "chatgpt/gpt-5.6-sol", "", "model")
		if p.holder() != pid {
			t.Error("the daemon was restarted")
		}
	})
	t.Run("runtime/M06 an access token that has ended is renewed, and one that is refused too", func(t *testing.T) {
		p.expireLogin()
		p.want(0, "ok\n", "", "run", "hi")
		server.Revoke(false)
		p.want(0, "ok\n", "", "run", "hi")
		p.want(0, "replied in", "", "model", "test", "chatgpt/gpt-5.6-sol") // in a process of its own
		if accepted, refused := server.Renewals(); accepted != 2 || refused != 0 {
			t.Errorf("%d renewals, %d refused", accepted, refused)
		}
	})
	t.Run("runtime/M06 a client cannot hand over a key in place of the login", func(t *testing.T) {
		p.want(console.ExitFailed, "", "names no key that a configured model uses", "call", "model/setKey", `{"name":"chatgpt","key":"x"}`)
	})
	t.Run("runtime/M06 a login that has ended says to log in again", func(t *testing.T) {
		server.Revoke(true)
		p.want(console.ExitFailed, "", "log in again: lash login chatgpt", "run", "hi")
		p.unmarked()
	})
	t.Run("runtime/M06 a code on another device logs in as well", func(t *testing.T) {
		server.Enter()
		r := p.want(0, "logged in to ChatGPT", fakemodel.DeviceCode, "login", "chatgpt", "--device")
		if strings.Contains(r.out+r.err, accountMark) {
			t.Errorf("%+v", r)
		}
		p.want(0, "ok\n", "", "run", "hi")
	})
	t.Run("runtime/M06 after logout the daemon has the login no longer", func(t *testing.T) {
		p.want(0, "deleted the login of ChatGPT", "", "logout", "chatgpt")
		p.want(console.ExitFailed, "", "no model is set up", "run", "hi")
		p.want(console.ExitFailed, "", "run lash login chatgpt", "model", "test", "chatgpt/gpt-5.6-sol")
		p.unmarked()
	})
}

func TestLoginSurvivesAKill(t *testing.T) {
	var kills atomic.Bool
	var p *place
	p, server := newAccountPlace(t, func() {
		if kills.CompareAndSwap(true, false) {
			p.kill()
		}
	})
	server.Enter()
	p.want(0, "logged in", "", "login", "chatgpt", "--device")
	t.Run("runtime/M06 a daemon that is killed at the first use of a renewed token finds it in the store", func(t *testing.T) {
		p.want(0, "ok\n", "", "run", "hi")
		p.expireLogin()
		kills.Store(true)
		p.run("run", "hi") // loses its daemon
		p.want(0, "ok\n", "", "run", "hi")
		if accepted, refused := server.Renewals(); accepted != 1 || refused != 0 || kills.Load() {
			t.Errorf("%d renewals, %d refused, killed: %v", accepted, refused, !kills.Load())
		}
	})
}

func TestLoginSettings(t *testing.T) {
	for text, want := range map[string]string{
		"[providers.chatgpt]\nkey = {env = 'X'}":                                         "providers.chatgpt.key has no effect; run lash login chatgpt",
		"[providers.openai]\nlogin = 'https://example.org'":                              "providers.openai.login has no effect",
		"[providers.mine]\nbase_url = 'https://x.org/v1'\nlogin = 'https://example.org'": "providers.mine.login has no effect",
	} {
		t.Run("runtime/M06 config.toml with "+want, func(t *testing.T) { wantProblems(t, text, want) })
	}
	t.Run("runtime/M06 a provider that takes keys has no login with a code", func(t *testing.T) {
		p := newUser(t, "http://127.0.0.1:1/v1", "")
		p.want(console.ExitUsage, "", "--device is for chatgpt", "login", "anthropic", "--device")
	})
}
