package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// provider returns a provider as provider/list shows it.
func (p *peer) provider(name string) protocol.ProviderInfo {
	p.t.Helper()
	all := ask[protocol.ProviderListResult](p, "provider/list", protocol.Empty{}).Data
	i := slices.IndexFunc(all, func(p protocol.ProviderInfo) bool { return p.Name == name })
	if i < 0 {
		p.t.Fatalf("provider/list has no %s: %+v", name, all)
	}
	return all[i]
}

// refusesKey sends a key that must not be stored, and checks the kind and the text of the error.
func (p *peer) refusesKey(params protocol.ProviderSetKeyParams, want protocol.ErrorKind, text string) {
	p.t.Helper()
	_, err := try[protocol.StoredKey](p, "provider/setKey", params)
	if _, kind := refusal(err); kind != want || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), params.Key) {
		p.t.Errorf("provider/setKey: %v, %s, want %s with %q and without the key", err, kind, want, text)
	}
}

func TestProviderKeys(t *testing.T) {
	t.Run("part13/vscode a client stores, uses and removes the key of a provider", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t, fakemodel.Say("ok"), fakemodel.Say("Tested."), fakemodel.Say("Good day."))
		w.serve()
		p := w.dial("")
		if got := p.provider("anthropic"); got.Key != "" || got.Stored || !got.Pasted || got.Title != "Anthropic" {
			t.Errorf("before: %+v", got)
		}
		p.refusesKey(protocol.ProviderSetKeyParams{Name: "anthropic", Key: wrongKey}, protocol.KindSetupFailed, "Anthropic rejected the key (HTTP 401)")
		p.refusesKey(protocol.ProviderSetKeyParams{Name: "antropic", Key: rightKey}, protocol.KindSetupFailed, "did you mean anthropic?")
		p.refusesKey(protocol.ProviderSetKeyParams{Name: "chatgpt", Key: rightKey}, protocol.KindSetupFailed, "takes a login")
		p.refusesKey(protocol.ProviderSetKeyParams{Name: "ollama", Key: rightKey}, protocol.KindSetupFailed, "needs no key")
		if at := append(w.holds(wrongKey), w.holds(rightKey)...); at != nil {
			t.Errorf("a key that was not stored is in %q", at)
		}

		stored := ask[protocol.StoredKey](p, "provider/setKey", protocol.ProviderSetKeyParams{Name: "anthropic", Key: " " + rightKey + "\n"})
		if stored.File != w.inside("keys.json") || stored.Restart || stored.KeyringProblem != "" {
			t.Errorf("stored %+v", stored)
		}
		if got := p.provider("anthropic"); got.Key != "stored" || !got.Stored {
			t.Errorf("after: %+v", got)
		}
		if got := ask[protocol.ModelTestResult](p, "model/test", protocol.ModelTestParams{}); got.Text != "Tested." || !strings.HasPrefix(got.Name, "anthropic/") {
			t.Errorf("model/test: %+v", got)
		}
		turn := p.start(p.session(w.home), "hi").TurnID
		if r := p.wait(turn); r.State != protocol.TurnCompleted {
			t.Errorf("the turn is %s: %+v", r.State, r.Issues)
		}
		if at := w.holds(rightKey); !slices.Equal(at, []string{"keys.json"}) {
			t.Errorf("the key is in %q", at)
		}

		if left := ask[protocol.ProviderRemoveKeyResult](p, "provider/removeKey", protocol.ProviderParams{Name: "anthropic"}); left.Key != "" {
			t.Errorf("left %+v", left)
		}
		if got := p.provider("anthropic"); got.Key != "" || got.Stored {
			t.Errorf("after the removal: %+v", got)
		}
		_, err := try[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work})
		if _, kind := refusal(err); kind != protocol.KindModelNotFound {
			t.Errorf("a session without a key: %v", err)
		}
		_, err = try[protocol.ProviderRemoveKeyResult](p, "provider/removeKey", protocol.ProviderParams{Name: "anthropic"})
		if _, kind := refusal(err); kind != protocol.KindSetupFailed {
			t.Errorf("a second removal: %v", err)
		}
		if at := w.holds(rightKey); at != nil {
			t.Errorf("the removed key is in %q", at)
		}
	})
	t.Run("part13/vscode a key whose test gets no answer is stored only without a test", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		nowhere := "http://127.0.0.1:1/v1"
		w.write(w.inside("config.toml"), "[providers.mine]\nbase_url = \""+nowhere+"\"\n")
		w.serve()
		p := w.dial("")
		p.refusesKey(protocol.ProviderSetKeyParams{Name: "openai", Key: rightKey, BaseURL: nowhere}, protocol.KindProviderUnreachable, "the key was not stored")
		p.refusesKey(protocol.ProviderSetKeyParams{Name: "azure", Key: rightKey, BaseURL: nowhere}, protocol.KindProviderUnreachable, "the key was not stored")
		if text := configOf(w); strings.Contains(text, "openai") || strings.Contains(text, "azure") {
			t.Errorf("config.toml keeps the address of a key that was not stored: %s", text)
		}
		stored := ask[protocol.StoredKey](p, "provider/setKey", protocol.ProviderSetKeyParams{Name: "openai", Key: rightKey, BaseURL: nowhere, Untested: true})
		if !stored.Restart || stored.File == "" {
			t.Errorf("%+v", stored)
		}
		if text := configOf(w); !strings.Contains(text, "[providers.openai]\nbase_url = \""+nowhere+"\"") {
			t.Errorf("config.toml lacks the address: %s", text)
		}
	})
	t.Run("part13/vscode a key in the environment of the daemon counts before the stored one", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		w.env = append(w.env, "ANTHROPIC_API_KEY="+rightKey)
		w.serve()
		p := w.dial("")
		stored := ask[protocol.StoredKey](p, "provider/setKey", protocol.ProviderSetKeyParams{Name: "anthropic", Key: rightKey})
		if !slices.Equal(stored.UsedFirst, []string{"ANTHROPIC_API_KEY"}) {
			t.Errorf("stored %+v", stored)
		}
		if left := ask[protocol.ProviderRemoveKeyResult](p, "provider/removeKey", protocol.ProviderParams{Name: "anthropic"}); left.Key != "ANTHROPIC_API_KEY" {
			t.Errorf("left %+v", left)
		}
	})
}

func TestProviderLogin(t *testing.T) {
	for name, device := range map[string]bool{"with a browser": false, "with a code": true} {
		t.Run("part13/vscode a client logs in to ChatGPT "+name, func(t *testing.T) {
			t.Parallel()
			w := newKeyless(t)
			login := &fakemodel.Login{Mark: "mark-of-login-55aa"}
			issuer := httptest.NewServer(login)
			t.Cleanup(issuer.Close)
			w.write(w.inside("config.toml"), "[providers.chatgpt]\nlogin = \""+issuer.URL+"\"\n")
			w.serve()
			p := w.dial("")
			begun := ask[protocol.ProviderBeginLoginResult](p, "provider/beginLogin", protocol.ProviderBeginLoginParams{Name: "chatgpt", Device: device})
			finish := protocol.ProviderFinishLoginParams{LoginID: begun.LoginID}
			if device {
				if begun.Code != fakemodel.DeviceCode || begun.Redirect != "" {
					t.Errorf("begun %+v", begun)
				}
				login.Enter()
			} else {
				_, err := try[protocol.StoredKey](p, "provider/finishLogin", finish)
				if _, kind := refusal(err); kind != protocol.KindSetupFailed || !strings.Contains(err.Error(), begun.Redirect) {
					t.Errorf("without an address: %v", err)
				}
				finish.Address = followed(t, begun.URL)
			}
			if stored := ask[protocol.StoredKey](p, "provider/finishLogin", finish); stored.File != w.inside("keys.json") {
				t.Errorf("stored %+v", stored)
			}
			if got := p.provider("chatgpt"); !got.Stored || !got.Login || got.Key != "stored" {
				t.Errorf("after the login: %+v", got)
			}
			_, err := try[protocol.StoredKey](p, "provider/finishLogin", finish)
			if _, kind := refusal(err); kind != protocol.KindSetupFailed || !strings.Contains(err.Error(), "no such login") {
				t.Errorf("a login that was finished: %v", err)
			}
			if at := w.holds(login.Mark); !slices.Equal(at, []string{"keys.json"}) {
				t.Errorf("the tokens are in %q", at)
			}
		})
	}
}

// followed returns the address to which a server sends a browser that opens an address.
func followed(t *testing.T, at string) string {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header.Get("Location")
}

func TestLocalProvider(t *testing.T) {
	t.Run("part13/vscode a client finds a local server and makes its model the default", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{"data":[{"id":"qwen3:8b"}]}`)) }))
		t.Cleanup(server.Close)
		before := "# mine\n[providers.ollama]\nbase_url = \"" + server.URL + "/v1\"\n"
		w.write(w.inside("config.toml"), before)
		w.serve()
		p := w.dial("")
		if got := p.provider("ollama"); !got.Local || !slices.Equal(got.Models, []string{"qwen3:8b"}) {
			t.Errorf("the list has %+v", got)
		}
		if got := p.provider("vllm"); got.Models != nil {
			t.Errorf("a server that does not run has models: %+v", got)
		}
		_, err := try[protocol.ModelSetDefaultResult](p, "model/setDefault", protocol.ModelSetDefaultParams{Name: "nobody/x"})
		if _, kind := refusal(err); kind != protocol.KindSetupFailed {
			t.Errorf("an unknown model: %v", err)
		}
		if r := ask[protocol.ModelSetDefaultResult](p, "model/setDefault", protocol.ModelSetDefaultParams{Name: "ollama/qwen3:8b"}); r.Restart {
			t.Errorf("%+v", r)
		}
		if text := configOf(w); text != "model = \"ollama/qwen3:8b\"\n"+before {
			t.Errorf("config.toml is %q", text)
		}
		if models := ask[protocol.ModelListResult](p, "model/list", protocol.ModelListParams{}).Data; len(models) == 0 || models[0].Name != "ollama/qwen3:8b" || !models[0].Default {
			t.Errorf("model/list: %+v", models)
		}
		_, err = try[protocol.ModelTestResult](p, "model/test", protocol.ModelTestParams{Name: "ollama/qwen3:8b"})
		if _, kind := refusal(err); kind != protocol.KindProvider { // the server has only a list
			t.Errorf("model/test: %v", err)
		}
	})
}

// gateway is a server of Chat Completions that lists its models only for one key; "": without a key.
func gateway(t *testing.T, key string, models ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key != "" && r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			w.Write([]byte(`{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key"}}`))
			return
		}
		w.Write([]byte(`{"data":[{"id":"` + strings.Join(models, `"},{"id":"`) + `"}]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func TestOtherServers(t *testing.T) {
	models := func(p *peer, name string, want ...string) {
		p.t.Helper()
		if got := ask[protocol.ProviderModelsResult](p, "provider/models", protocol.ProviderParams{Name: name}).Data; !slices.Equal(got, want) {
			p.t.Errorf("provider/models of %s: %q, want %q", name, got, want)
		}
	}
	t.Run("part13/vscode a client adds a server with a key, and lists its models", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		w.serve()
		p := w.dial("")
		at := gateway(t, rightKey, "acme-large", "acme-small")
		p.refusesKey(protocol.ProviderSetKeyParams{Name: "acme", Key: wrongKey, BaseURL: at}, protocol.KindSetupFailed, "acme rejected the key (HTTP 401): Incorrect API key provided. lashd did not store it; check the key and enter it again")
		if stored := ask[protocol.StoredKey](p, "provider/setKey", protocol.ProviderSetKeyParams{Name: "acme", Key: rightKey, BaseURL: at}); !stored.Restart {
			t.Errorf("%+v", stored)
		}
		models(p, "acme", "acme-large", "acme-small")
		ask[protocol.ModelSetDefaultResult](p, "model/setDefault", protocol.ModelSetDefaultParams{Name: "acme/acme-small"})
		if text := configOf(w); !strings.HasPrefix(text, "model = \"acme/acme-small\"\n") || !strings.HasSuffix(text, "\n[providers.acme]\nbase_url = \""+at+"\"\n") {
			t.Errorf("config.toml is %q", text)
		}
		_, err := try[protocol.ProviderSetAddressResult](p, "provider/setAddress", protocol.ProviderSetAddressParams{Name: "acme", BaseURL: gateway(t, "", "m")})
		if _, kind := refusal(err); kind != protocol.KindSetupFailed || !strings.Contains(err.Error(), "acme has a key, which would be sent to") {
			t.Errorf("another address for a key: %v", err)
		}
	})
	t.Run("part13/vscode a client adds a server without a key, if it answers", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		w.serve()
		p := w.dial("")
		_, err := try[protocol.ProviderSetAddressResult](p, "provider/setAddress", protocol.ProviderSetAddressParams{Name: "mine", BaseURL: "http://127.0.0.1:1/v1"})
		if _, kind := refusal(err); kind != protocol.KindProviderUnreachable || !strings.HasSuffix(err.Error(), "nothing answers at http://127.0.0.1:1/v1; start the server, or correct the address") {
			t.Errorf("a server that does not run: %v", err)
		}
		if r := ask[protocol.ProviderSetAddressResult](p, "provider/setAddress", protocol.ProviderSetAddressParams{Name: "mine", BaseURL: gateway(t, rightKey)}); !r.KeyWanted || r.Restart {
			t.Errorf("a server that wants a key: %+v", r)
		}
		if _, err := os.Stat(w.inside("config.toml")); err == nil && strings.Contains(configOf(w), "mine") {
			t.Errorf("config.toml has an address that does not work: %s", configOf(w))
		}
		at := gateway(t, "", "m1")
		for _, restart := range []bool{true, false} {
			if r := ask[protocol.ProviderSetAddressResult](p, "provider/setAddress", protocol.ProviderSetAddressParams{Name: "mine", BaseURL: at}); r.KeyWanted || r.Restart != restart {
				t.Errorf("%+v, want restart %v", r, restart)
			}
		}
		models(p, "mine", "m1")
	})
	t.Run("part13/vscode a local server that wants a key gets one", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		w.write(w.inside("config.toml"), "[providers.vllm]\nbase_url = \""+gateway(t, rightKey, "qwen")+"\"\n")
		w.serve()
		p := w.dial("")
		if got := p.provider("vllm"); !got.KeyWanted || got.Models != nil {
			t.Errorf("without a key: %+v", got)
		}
		ask[protocol.StoredKey](p, "provider/setKey", protocol.ProviderSetKeyParams{Name: "vllm", Key: rightKey})
		if got := p.provider("vllm"); got.Key != "stored" || !slices.Equal(got.Models, []string{"qwen"}) {
			t.Errorf("with a key: %+v", got)
		}
	})
}

// configOf returns the text of config.toml.
func configOf(w *world) string {
	w.t.Helper()
	data, err := os.ReadFile(w.inside("config.toml"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}
