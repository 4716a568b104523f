package cli

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/test/fakemodel"
)

// secretKey is long enough to be searched for in files.
const secretKey = "key-9f3c2a7be1d04c55"

// keyedModel configures a model server that accepts only the key in MY_KEY.
func keyedModel(p *place) {
	p.t.Helper()
	model := fakemodel.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secretKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		model.ServeHTTP(w, r)
	}))
	p.t.Cleanup(server.Close)
	p.write("config.toml", "base_url = '"+server.URL+"/v1'\nkey_env = 'MY_KEY'\n")
}

func TestKeyExportedAfterTheDaemonStarted(t *testing.T) {
	p := newPlace(t)
	keyedModel(p)
	p.want(console.ExitFailed, "", "check the environment variable MY_KEY", "run", "hi") // starts the daemon
	pid := p.holder()
	without := p.environ
	p.environ = append(p.environ, "MY_KEY="+secretKey)
	t.Run("outside/23 run passes the daemon the key that it lacks", func(t *testing.T) {
		p.want(0, "ok\n", "", "run", "hi")
		if p.holder() != pid {
			t.Error("the daemon was restarted")
		}
	})
	p.environ = without
	t.Run("outside/23 the daemon keeps the key in memory", func(t *testing.T) { p.want(0, "ok\n", "", "run", "hi") })
	t.Run("outside/23 the key is stored nowhere else", func(t *testing.T) {
		err := filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), secretKey) {
				t.Errorf("%s has the key", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestSetKeyRefusals(t *testing.T) {
	p := newPlace(t)
	keyedModel(p)
	p.environ = append(p.environ, "MY_KEY="+secretKey)
	for name, c := range map[string]struct{ params, reason string }{
		"outside/23 a key that the daemon has from its environment stays": {`{"name":"MY_KEY","key":"another-key"}`, "from its own environment"},
		"outside/23 a name that no model uses is refused":                 {`{"name":"HOME","key":"x"}`, "names no key that a configured model uses"},
		"outside/23 an empty key is refused":                              {`{"name":"MY_KEY","key":""}`, "must not be empty"},
	} {
		t.Run(name, func(t *testing.T) { p.want(console.ExitFailed, "", c.reason, "call", "model/setKey", c.params) })
	}
	p.want(0, "ok\n", "", "run", "hi")
}
