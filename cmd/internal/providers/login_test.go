package providers_test

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/cmd/internal/providers"
	"lashd/engine/models"
	"lashd/engine/provider"
	"lashd/engine/provider/chatgpt"
	"lashd/engine/provider/keystore"
	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// newAccount returns a model of a ChatGPT account that has logged in, and the server that did it. The login is in a store of files.
func newAccount(t *testing.T, login *fakemodel.Login) models.Model {
	t.Helper()
	login.Mark = "canary5d1e7c"
	issuer, model := httptest.NewServer(login), httptest.NewServer(login.Guard(fakemodel.New()))
	t.Cleanup(issuer.Close)
	t.Cleanup(model.Close)
	store := keystore.New(t.TempDir(), keystore.NewKeyring(func(string) string { return "off" }))
	device, err := chatgpt.NewServer(issuer.URL).BeginDevice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	login.Enter()
	tokens, err := device.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Set(t.Context(), "chatgpt", tokens.Secret()); err != nil {
		t.Fatal(err)
	}
	source := providers.New(providers.Config{
		Default: func() string { return "" }, Keys: providers.KeyRing{Keys: provider.NewKeys(func(string) string { return "" }), Store: store}, Logins: store,
		Providers: map[string]providers.Provider{"chatgpt": {BaseURL: model.URL + "/backend-api/codex", Login: issuer.URL}},
		NoKey:     func(name string, _ []string) string { return "run lash login " + name },
	})
	m, ok := source.Model("")
	if !ok || m.Name != "chatgpt/gpt-5.6-sol" || m.Price != nil || m.Spec.ContextWindow != 1050000 {
		t.Fatalf("the default model is %+v, %v", m, ok)
	}
	return m
}

// say makes one call with options that the server rejects, and returns the reply, its error and the receipts.
func say(t *testing.T, m models.Model) (text string, receipts []protocol.OptionReceipt, attempts []string, err error) {
	t.Helper()
	var c provider.Collector
	req := &provider.Request{
		Model: m.Spec, Options: protocol.GenerationOptions{MaxOutput: 16, Temperature: new(0.5)},
		Messages: []*protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "hi"}}}},
	}
	for chunk, failed := range m.Provider.Stream(t.Context(), req) {
		if failed != nil {
			return text, receipts, attempts, failed
		}
		text += chunk.Text
		receipts = append(receipts, chunk.Options...)
		c.Add(&chunk)
	}
	for _, a := range c.Reply().Attempts {
		if a.Error != nil {
			attempts = append(attempts, a.Error.Code)
		}
	}
	return text, receipts, attempts, nil
}

func TestAccount(t *testing.T) {
	t.Run("runtime/M06 a call to the server for ChatGPT accounts has the form that the server requires", func(t *testing.T) {
		text, receipts, _, err := say(t, newAccount(t, &fakemodel.Login{}))
		if text != "ok" || err != nil || len(receipts) < 2 || receipts[0].Fate != "omittedUnsupported" || receipts[1].Fate != "omittedUnsupported" {
			t.Errorf("%q, %+v, %v", text, receipts, err)
		}
	})
	t.Run("runtime/M06 a refused access token is renewed once, and the call succeeds", func(t *testing.T) {
		login := &fakemodel.Login{}
		m := newAccount(t, login)
		login.Revoke(false)
		began := time.Now()
		text, _, attempts, err := say(t, m)
		if text != "ok" || err != nil || strings.Join(attempts, " ") != "login_renewed" || time.Since(began) > time.Second {
			t.Errorf("%q after %q in %s, %v", text, attempts, time.Since(began), err)
		}
		if accepted, refused := login.Renewals(); accepted != 1 || refused != 0 {
			t.Errorf("%d renewals, %d refused", accepted, refused)
		}
	})
	t.Run("runtime/M06 a login that both servers refuse ends with the advice to log in again", func(t *testing.T) {
		login := &fakemodel.Login{}
		m := newAccount(t, login)
		login.Revoke(true)
		for range 2 {
			_, _, _, err := say(t, m)
			if err == nil || !strings.Contains(err.Error(), "log in again: lash login chatgpt") || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v", err)
			}
		}
		if accepted, refused := login.Renewals(); accepted != 0 || refused != 1 {
			t.Errorf("%d renewals, %d refused; want one question", accepted, refused)
		}
	})
	t.Run("runtime/M06 a server that refuses renewed tokens is not asked for ever", func(t *testing.T) {
		login := &fakemodel.Login{RefuseAll: true}
		m := newAccount(t, login)
		_, _, _, err := say(t, m)
		if err == nil || !strings.Contains(err.Error(), "log in again: lash login chatgpt") {
			t.Errorf("%v", err)
		}
		if accepted, _ := login.Renewals(); accepted != 1 {
			t.Errorf("%d renewals, want 1", accepted)
		}
	})
	t.Run("runtime/M06 without a login a call says how to log in", func(t *testing.T) {
		store := keystore.New(filepath.Join(t.TempDir(), "none"), keystore.NewKeyring(func(string) string { return "off" }))
		source := providers.New(providers.Config{Logins: store, NoKey: func(name string, _ []string) string { return "run lash login " + name }})
		m, _ := source.Model("chatgpt/gpt-5.6-sol")
		if _, _, _, err := say(t, m); err == nil || !strings.Contains(err.Error(), "run lash login chatgpt") {
			t.Errorf("%v", err)
		}
	})
}
