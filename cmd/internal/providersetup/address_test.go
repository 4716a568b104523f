package providersetup_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/providersetup"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// listing is a server that lists one model, after it has called asked.
func listing(t *testing.T, asked func(*http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r)
		_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestChangesAtOnce(t *testing.T) {
	setup, store := newSetup(t, "# mine\n")
	s := providersetup.NewService(setup.Home, setup.Memory)
	at := listing(t, func(*http.Request) {})
	const each = 12
	var all sync.WaitGroup
	for i := range each {
		for _, change := range []func() error{
			func() error {
				_, err := s.SetAddress(t.Context(), &protocol.ProviderSetAddressParams{Name: fmt.Sprintf("free%d", i), BaseURL: at})
				return err
			},
			func() error {
				_, err := s.SetKey(t.Context(), &protocol.ProviderSetKeyParams{Name: fmt.Sprintf("keyed%d", i), Key: "sk-entered", BaseURL: at})
				return err
			},
			func() error {
				return config.NewLiveRules(setup.Home).Add(t.Context(), protocol.ApprovalRule{Action: protocol.ApproveDeny, Tool: fmt.Sprintf("tool%d", i)})
			},
			func() error {
				_, err := s.SetDefaultModel(t.Context(), &protocol.ModelSetDefaultParams{Name: fmt.Sprintf("openai/m%d", i)})
				return err
			},
		} {
			all.Go(func() {
				if err := change(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	text := configured(t, setup)
	for i := range each {
		for _, want := range []string{
			fmt.Sprintf("[providers.free%d]\nbase_url = %q\n", i, at), fmt.Sprintf("[providers.keyed%d]\nbase_url = %q\n", i, at), fmt.Sprintf("tool = 'tool%d'\n", i),
		} {
			if strings.Count(text, want) != 1 {
				t.Errorf("part13/vscode after %d changes at once, config.toml does not have once %q", 4*each, want)
			}
		}
		if !store.Has(fmt.Sprintf("keyed%d", i)) {
			t.Errorf("part13/vscode the key of keyed%d is lost", i)
		}
	}
	if !strings.Contains(text, "# mine\n") || strings.Count(text, "model = ") != 1 {
		t.Errorf("part13/vscode config.toml is\n%s", text)
	}
}

// TestKeysOfMovingProviders has a provider get a key while its address is tested, and another address while its key is tested.
func TestKeysOfMovingProviders(t *testing.T) {
	var s providersetup.Setup
	key := providersetup.Key{Provider: "mine", Text: provider.NewSecret("sk-entered")}
	var once sync.Once
	from, to := listing(t, func(r *http.Request) {}), ""

	to = listing(t, func(r *http.Request) {
		once.Do(func() {
			if _, _, err := s.SetKey(t.Context(), key); err != nil {
				t.Error(err)
			}
		})
	})
	s, store := newSetup(t, "[providers.mine]\nbase_url = \""+from+"\"\n")
	r, err := s.SetAddress(t.Context(), "mine", to)
	if err == nil || !strings.Contains(err.Error(), "mine has a key, which would be sent to "+to) || r.Restart || strings.Contains(configured(t, s), to) || !store.Has("mine") {
		t.Errorf("part13/vscode a provider that gets a key during the test of another address: %+v, %v, with the file\n%s", r, err, configured(t, s))
	}

	once = sync.Once{}
	to = listing(t, func(*http.Request) {})
	from = listing(t, func(*http.Request) {
		once.Do(func() {
			if _, err := s.SetAddress(t.Context(), "mine", to); err != nil {
				t.Error(err)
			}
		})
	})
	s, store = newSetup(t, "[providers.mine]\nbase_url = \""+from+"\"\n")
	_, _, err = s.SetKey(t.Context(), key)
	if err == nil || !strings.Contains(err.Error(), "the address of mine has changed since the key was tested; enter the key again") || store.Has("mine") || s.Memory.From("mine") != "" {
		t.Errorf("part13/vscode a provider that gets another address during the test of its key: %v, stored %v", err, store.Has("mine"))
	}
}

func TestHeadersAndOtherAddresses(t *testing.T) {
	var asked atomic.Int32
	count := func(*http.Request) { asked.Add(1) }
	from, to := listing(t, func(*http.Request) {}), listing(t, count)
	before := "[providers.mine]\nbase_url = \"" + from + "\"\nheaders = {X-Token = \"the-secret\"}\n"
	s, store := newSetup(t, before)
	want := "the headers of mine in config.toml would be sent to " + to + "; remove headers from [providers.mine], or choose another name for the provider"
	if r, err := s.SetAddress(t.Context(), "mine", to); err == nil || err.Error() != want || r.Restart {
		t.Errorf("part13/vscode another address for headers: %+v, %v, want %q", r, err, want)
	}
	for _, untested := range []bool{true, false} {
		key := providersetup.Key{Provider: "mine", Text: provider.NewSecret("sk-entered"), BaseURL: to, Untested: untested}
		if _, _, err := s.SetKey(t.Context(), key); err == nil || err.Error() != want {
			t.Errorf("part13/vscode a key with another address for headers: %v, want %q", err, want)
		}
	}
	if n := asked.Load(); n > 0 || configured(t, s) != before || store.Has("mine") {
		t.Errorf("part13/vscode the new address got %d requests, the key is stored: %v, and the file is\n%s", n, store.Has("mine"), configured(t, s))
	}
	if _, _, err := s.SetKey(t.Context(), providersetup.Key{Provider: "mine", Text: provider.NewSecret("sk-entered"), BaseURL: from}); err != nil {
		t.Errorf("part13/vscode a key with the address that the headers have: %v", err)
	}
	s, _ = newSetup(t, "[providers.openai]\nheaders = {X-Token = \"the-secret\"}\n")
	if _, err := s.SetAddress(t.Context(), "openai", to); err == nil || asked.Load() > 0 {
		t.Errorf("part13/vscode another address than that of the preset, for headers: %v, %d requests", err, asked.Load())
	}
	s, _ = newSetup(t, "[providers.mine]\nheaders = {X-Version = \"2\"}\n")
	if r, err := s.SetAddress(t.Context(), "mine", to); err != nil || !r.Restart || !strings.Contains(configured(t, s), to) {
		t.Errorf("part13/vscode the first address of a provider with headers: %+v, %v", r, err)
	}
}
