package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/test/fakemodel"
)

// keyedServer serves a model on loopback to requests with secretKey only, and returns its base URL.
func keyedServer(t *testing.T) string {
	t.Helper()
	model := fakemodel.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secretKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// newUser returns a place without keys, keyring and local servers, whose config.toml has the text. The preset anthropic speaks Chat
// Completions at base.
func newUser(t *testing.T, base, text string) *place {
	t.Helper()
	p := newPlace(t)
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "OPENAI_BASE_URL"} {
		p.environ = append(p.environ, name+"=")
	}
	p.environ = append(p.environ, "LASHD_KEYRING=off")
	nowhere := "http://127.0.0.1:1/v1"
	for _, local := range []string{"ollama", "llamacpp", "lmstudio", "vllm"} {
		text += "[providers." + local + "]\nbase_url = '" + nowhere + "'\n"
	}
	p.write("config.toml", text+"[providers.anthropic]\napi = 'chat'\nbase_url = '"+base+"'\n")
	return p
}

// give runs a command with text on its stdin.
func (p *place) give(text string, args ...string) result {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &errs
	return result{code: exitCode(p.t, cmd.Run()), out: out.String(), err: errs.String()}
}

func TestLogin(t *testing.T) {
	p := newUser(t, keyedServer(t), "")
	t.Run("issue/18 a first run without a key says the three ways to go on", func(t *testing.T) {
		r := p.want(console.ExitFailed, "", "no model is set up", "run", "hi")
		for _, way := range []string{"lash login", "local server", "lashd demo"} {
			if !strings.Contains(r.err, way) {
				t.Errorf("%q, want %q", r.err, way)
			}
		}
		p.want(console.ExitFailed, "no model is set up", "", "doctor")
	})
	pid := p.holder()
	t.Run("issue/18 a key that the server refuses is not stored", func(t *testing.T) {
		if r := p.give("wrong\n", "login", "anthropic"); r.code != console.ExitFailed || !strings.Contains(r.err, "Anthropic rejected the key (HTTP 401)") || !strings.Contains(r.err, "did not store it") {
			t.Errorf("%+v", r)
		}
		if _, err := os.Stat(filepath.Join(p.home, "keys.json")); !os.IsNotExist(err) {
			t.Errorf("keys.json: %v", err)
		}
	})
	t.Run("issue/18 login tests and stores the key, and prints it nowhere", func(t *testing.T) {
		r := p.give(secretKey+"\n", "login", "anthropic")
		if r.code != 0 || !strings.Contains(r.out, "stored the key of Anthropic in "+filepath.Join(p.home, "keys.json")) || strings.Contains(r.out+r.err, secretKey) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("issue/18 the running daemon uses the key at once", func(t *testing.T) {
		p.want(0, "ok\n", "", "run", "hi")
		if p.holder() != pid {
			t.Error("the daemon was restarted")
		}
		p.want(0, "anthropic/", "", "model")
	})
	t.Run("issue/18 a daemon that starts later reads the stored key", func(t *testing.T) {
		p.kill()
		p.want(0, "ok\n", "", "run", "hi")
	})
	t.Run("issue/18 model test makes a call without the daemon", func(t *testing.T) {
		p.want(0, "anthropic/claude-x replied in ", "", "model", "test", "anthropic/claude-x")
		p.want(console.ExitFailed, "", "no such model", "model", "test", "nobody")
	})
	t.Run("issue/18 logout deletes the key, and the running daemon forgets it", func(t *testing.T) {
		p.want(0, "deleted the key of Anthropic", "", "logout")
		p.want(console.ExitFailed, "", "no model is set up", "run", "hi")
		p.want(console.ExitFailed, "", "no key of Anthropic is stored; lash model providers shows where keys come from", "logout", "anthropic")
		p.want(console.ExitFailed, "", "lash login anthropic", "model", "test", "anthropic/claude-x")
	})
}

func TestLoginsAtOnce(t *testing.T) {
	t.Run("part9/keys commands that store keys at the same time lose none", func(t *testing.T) {
		var text strings.Builder
		for n := range 8 {
			fmt.Fprintf(&text, "[providers.p%d]\nbase_url = 'http://127.0.0.1:1/v1'\n", n)
		}
		p := newUser(t, "http://127.0.0.1:1/v1", text.String())
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				if r := p.give(fmt.Sprintf("key-of-%d", n), "login", "--untested", fmt.Sprintf("p%d", n)); r.code != 0 {
					t.Errorf("login p%d: %+v", n, r)
				}
			})
		}
		wg.Wait()
		data, err := os.ReadFile(filepath.Join(p.home, "keys.json"))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 8 {
			if !strings.Contains(string(data), fmt.Sprintf(`"key": "key-of-%d"`, n)) {
				t.Errorf("the key of p%d is lost: %s", n, data)
			}
		}
	})
}

func TestLoginRefusals(t *testing.T) {
	p := newUser(t, "http://127.0.0.1:1/v1", "")
	for name, c := range map[string]struct {
		in, reason string
		args       []string
	}{
		"issue/18 an unknown provider":              {"k", "did you mean anthropic?", []string{"login", "antropic"}},
		"issue/18 a provider without an address":    {"k", "it has the form https://RESOURCE.openai.azure.com", []string{"login", "azure"}},
		"issue/18 a server that needs no key":       {"k", "Ollama needs no key", []string{"login", "ollama"}},
		"issue/18 an empty key":                     {" \n", "no key was entered", []string{"login", "anthropic"}},
		"issue/18 two lines":                        {"a\nb\n", "it must be one line", []string{"login", "anthropic"}},
		"issue/18 no provider without a terminal":   {"k", "name the provider", []string{"login"}},
		"issue/18 no provider and no key to delete": {"", "no key is stored", []string{"logout"}},
	} {
		t.Run(name, func(t *testing.T) {
			if r := p.give(c.in, c.args...); r.code == 0 || !strings.Contains(r.err, c.reason) {
				t.Errorf("%+v, want %q", r, c.reason)
			}
		})
	}
}

func TestKeyReferences(t *testing.T) {
	base := keyedServer(t)
	for name, key := range map[string]string{
		"file":    "file = 'my.key'",
		"command": "command = 'cat my.key'",
		"env":     "env = 'MY_OWN_KEY'",
	} {
		t.Run("issue/18 a key is taken from "+name, func(t *testing.T) {
			p := newUser(t, base, "model = 'mine/m'\n[providers.mine]\nbase_url = '"+base+"'\nkey = {"+key+"}\n")
			p.write("my.key", secretKey+"\n")
			p.environ = append(p.environ, "MY_OWN_KEY="+secretKey)
			p.want(0, "ok\n", "", "run", "hi")
		})
	}
	t.Run("issue/18 a key that cannot be read fails the call with the reason", func(t *testing.T) {
		p := newUser(t, base, "model = 'mine/m'\n[providers.mine]\nbase_url = '"+base+"'\nkey = {command = 'echo locked >&2; exit 1'}\n")
		p.want(console.ExitFailed, "", "cannot read the API key: the key command failed: exit code 1; run it in a terminal", "run", "hi")
	})
}

func TestModelUse(t *testing.T) {
	base := keyedServer(t)
	p := newUser(t, base, "# my settings\ntrace = false # keep\n")
	p.environ = append(p.environ, "ANTHROPIC_API_KEY="+secretKey)
	p.want(0, "ok\n", "", "run", "hi") // starts the daemon
	rest, err := os.ReadFile(filepath.Join(p.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"anthropic/first", "anthropic/second"} {
		t.Run("issue/18 new sessions use the model at once, and the rest of the file stays", func(t *testing.T) {
			p.want(0, "new sessions use "+name, "", "model", "use", name)
			if text, err := os.ReadFile(filepath.Join(p.home, "config.toml")); string(text) != "model = \""+name+"\"\n"+string(rest) || err != nil {
				t.Errorf("%q, %v", text, err)
			}
			p.want(0, `"name":"`+name+`"`, "", "model", "--json")
			p.want(0, "ok\n", "", "run", "hi")
			p.want(0, `"`+strings.TrimPrefix(name, "anthropic/")+`"`, "", "session", "--json")
		})
	}
	t.Run("issue/18 an unknown name changes nothing", func(t *testing.T) {
		p.want(console.ExitFailed, "", "no such model", "model", "use", "nobody/x")
		p.want(console.ExitFailed, "", "no such model", "model", "use", "x")
		if text, err := os.ReadFile(filepath.Join(p.home, "config.toml")); !strings.HasPrefix(string(text), "model = \"anthropic/second\"\n") || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestLocalServersAreOffered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"data":[{"id":"qwen3:8b"},{"id":"llama"}]}`))
	}))
	t.Cleanup(server.Close)
	p := newUser(t, "http://127.0.0.1:1/v1", "")
	text, err := os.ReadFile(filepath.Join(p.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("config.toml", strings.Replace(string(text), "http://127.0.0.1:1/v1", server.URL+"/v1", 1))
	t.Run("issue/18 a first run offers the server on this machine", func(t *testing.T) {
		p.want(console.ExitFailed, "", "lash model use ollama/qwen3:8b    use Ollama on this machine", "run", "hi")
	})
	t.Run("issue/18 it is used after a person chose it", func(t *testing.T) {
		p.want(0, "new sessions use ollama/qwen3:8b", "", "model", "use", "ollama/qwen3:8b")
		p.want(0, "ollama/qwen3:8b", "Ollama runs at "+server.URL+"/v1 with qwen3:8b, llama", "model", "list")
	})
}

func TestLoginChangesTheRunningDaemon(t *testing.T) {
	p := newUser(t, keyedServer(t), "")
	p.want(0, "", "", "call", "ping") // starts the daemon without a key
	without := p.environ
	p.environ = append(p.environ, "ANTHROPIC_API_KEY=wrong")
	p.want(console.ExitFailed, "", "HTTP 401", "run", "hi") // hands over the wrong key
	p.environ = without
	t.Run("issue/18 a new key counts before one that a shell handed over earlier", func(t *testing.T) {
		if r := p.give(secretKey, "login", "anthropic"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		p.want(0, "ok\n", "", "run", "hi")
	})
	t.Run("issue/18 after logout the daemon has the key no longer", func(t *testing.T) {
		p.want(0, "deleted the key of Anthropic", "", "logout", "anthropic")
		p.want(console.ExitFailed, "", "HTTP 401", "run", "hi") // with the key that the shell handed over
	})
}
