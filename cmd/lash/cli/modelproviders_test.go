package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/cmd/internal/config"
	"lashd/rpc/protocol"
)

func TestModelProviders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"data":[{"id":"qwen3:8b"}]}`))
	}))
	t.Cleanup(server.Close)
	p := newUser(t, keyedServer(t), "[providers.mine]\nbase_url = 'http://127.0.0.1:1/v1'\nkey = {file = 'my.key'}\n")
	text, err := os.ReadFile(filepath.Join(p.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("config.toml", strings.Replace(string(text), "http://127.0.0.1:1/v1'\n[providers.llamacpp]", server.URL+"/v1'\n[providers.llamacpp]", 1))
	p.environ = append(p.environ, "OPENAI_API_KEY="+secretKey)
	if r := p.give(secretKey, "login", "anthropic"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	r := p.want(0, "", "", "model", "providers", "--json")
	if strings.Contains(r.out, secretKey) {
		t.Errorf("issue/18 the list shows a key: %s", r.out)
	}
	var all []protocol.ProviderInfo
	if err := json.Unmarshal([]byte(r.out), &all); err != nil {
		t.Fatal(err)
	}
	find := func(name string) protocol.ProviderInfo {
		return all[slices.IndexFunc(all, func(p protocol.ProviderInfo) bool { return p.Name == name })]
	}
	for name, want := range map[string]struct {
		key            string
		stored, pasted bool
		models         int
		login          bool
	}{
		"anthropic": {"stored", true, true, 0, false},
		"openai":    {"OPENAI_API_KEY", false, true, 0, false},
		"azure":     {"", false, true, 0, false},
		"chatgpt":   {"", false, false, 0, true},
		"vertex":    {"", false, false, 0, false},
		"mine":      {"config.toml", false, true, 0, false},
		"ollama":    {"", false, false, 1, false},
		"vllm":      {"", false, false, 0, false},
	} {
		t.Run("issue/18 the list of providers says where the key is from: "+name, func(t *testing.T) {
			if got := find(name); got.Key != want.key || got.Stored != want.stored || got.Pasted != want.pasted || len(got.Models) != want.models || got.Login != want.login {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	t.Run("issue/18 the table has the same", func(t *testing.T) { p.want(0, "Anthropic", "", "model", "providers") })
}

func TestLoginBaseURL(t *testing.T) {
	base := keyedServer(t)
	for name, c := range map[string]struct{ before, after string }{
		"no table":     {"trace = false", "trace = false\n\n[providers.azure]\nbase_url = \"URL\"\n"},
		"a table":      {"[providers.azure] # mine\napi = 'chat'", "[providers.azure] # mine\nbase_url = \"URL\"\napi = 'chat'"},
		"another one":  {"[providers.azure]\nbase_url = 'http://x/v1' # old\n", "[providers.azure]\nbase_url = \"URL\" # old\n"},
		"inline table": {"providers = {azure = {api = 'chat'}}\n", ""},
	} {
		t.Run("issue/18 login writes an address into a file with "+name, func(t *testing.T) {
			if got := strings.ReplaceAll(string(config.WithBaseURL([]byte(c.before), "azure", base)), base, "URL"); got != c.after && c.after != "" {
				t.Errorf("%q, want %q", got, c.after)
			}
			p := newPlace(t)
			p.environ = append(p.environ, "LASHD_KEYRING=off")
			p.write("config.toml", c.before)
			r := p.give("wrong", "login", "azure", "--base-url", base)
			if got, err := os.ReadFile(filepath.Join(p.home, "config.toml")); string(got) != c.before || err != nil || r.code == 0 {
				t.Errorf("after a failed login the file has %q, want %q; %v %+v", got, c.before, err, r)
			}
		})
	}
	t.Run("issue/18 a provider without an address gets it with its key", func(t *testing.T) {
		p := newPlace(t)
		p.environ = append(p.environ, "LASHD_KEYRING=off")
		p.write("config.toml", "[providers.azure]\napi = 'chat'\nkey_header = 'Authorization'\n")
		if r := p.give(secretKey, "login", "azure", "--base-url", base); r.code != 0 || !strings.Contains(r.out, "stored the key of Azure OpenAI") {
			t.Fatalf("%+v", r)
		}
		p.want(0, "azure/m replied in ", "", "model", "test", "azure/m")
	})
}
