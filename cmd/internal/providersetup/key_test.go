package providersetup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/providers"
	"lashd/cmd/internal/providersetup"
	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
	"lashd/rpc/protocol"
)

// newSetup returns the set-up of a data directory with a config.toml, as a daemon has it.
func newSetup(t *testing.T, config string) (providersetup.Setup, *keystore.Store) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("LASHD_KEYRING", "off")
	t.Setenv("OPENAI_API_KEY", "")
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := provider.NewKeys(os.Getenv, "OPENAI_API_KEY")
	memory.Accept("openai")
	return providersetup.Setup{Home: home, Memory: memory}, keystore.New(home, keystore.NewKeyring(os.Getenv))
}

// configured returns what config.toml has now.
func configured(t *testing.T, s providersetup.Setup) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// moved is a key with a new address.
var moved = providersetup.Key{Provider: "openai", Text: provider.NewSecret("sk-entered"), BaseURL: "http://127.0.0.1:1/v1", Untested: true}

func TestNewAddressAndOtherKeys(t *testing.T) {
	for from, c := range map[string]struct{ config, env, want string }{
		"the environment": {"# mine\n", "sk-of-the-environment", "the key in OPENAI_API_KEY would be sent to http://127.0.0.1:1/v1"},
		"config.toml":     {"[providers.openai]\nkey = { file = \"k\" }\n", "", "the key that config.toml names would be sent to http://127.0.0.1:1/v1"},
	} {
		s, store := newSetup(t, c.config)
		t.Setenv("OPENAI_API_KEY", c.env)
		_, _, err := s.SetKey(t.Context(), moved)
		if err == nil || !strings.Contains(err.Error(), c.want) || store.Has("openai") || configured(t, s) != c.config {
			t.Errorf("part13/vscode a new address while the key comes from %s: %v, stored %v, with the file\n%s\nwant %q and no change", from, err, store.Has("openai"), configured(t, s), c.want)
		}
		still := moved
		still.BaseURL = ""
		if _, _, err := s.SetKey(t.Context(), still); err != nil || !store.Has("openai") {
			t.Errorf("part13/vscode a key without an address while another one comes from %s: %v", from, err)
		}
	}
}

func TestAddressAfterKey(t *testing.T) {
	s, store := newSetup(t, "# mine\n")
	if err := os.WriteFile(store.Path(), []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.SetKey(t.Context(), moved); err == nil || !strings.Contains(err.Error(), "the key was not stored") || configured(t, s) != "# mine\n" {
		t.Errorf("part13/vscode an address whose key cannot be stored: %v, with the file\n%s", err, configured(t, s))
	}
	if err := os.Remove(store.Path()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.SetKey(t.Context(), moved); err != nil || !strings.Contains(configured(t, s), `base_url = "http://127.0.0.1:1/v1"`) {
		t.Errorf("part13/vscode an address with its key: %v, with the file\n%s", err, configured(t, s))
	}
}

func TestKeyOfARunningDaemon(t *testing.T) {
	s, store := newSetup(t, "")
	ring := providers.KeyRing{Keys: s.Memory, Store: store}
	key := func(address string) string {
		got, err := ring.Key(t.Context(), "openai", providers.Provider{BaseURL: address, NeedKey: true})
		if err != nil && !errors.Is(err, keystore.ErrOtherAddress) {
			t.Error(err)
		}
		return got.Reveal()
	}
	if stored, _, err := s.SetKey(t.Context(), moved); err != nil || !stored.Restart || s.Memory.From("openai") != "" {
		t.Errorf("part13/vscode a daemon with the old address gets the key for the new one: %+v, %v, %q", stored, err, s.Memory.From("openai"))
	}
	still := moved
	still.BaseURL = ""
	still.Text = provider.NewSecret("sk-second")
	if stored, _, err := s.SetKey(t.Context(), still); err != nil || stored.Restart {
		t.Errorf("part13/vscode a key without another address: %+v, %v", stored, err)
	}
	if got := key(moved.BaseURL); got != "sk-second" {
		t.Errorf("part13/vscode a daemon with the new address has the key %q", got)
	}
	if got := key("https://api.openai.com/v1"); got != "" || ring.Has("openai", providers.Provider{BaseURL: "https://api.openai.com/v1"}) {
		t.Errorf("part13/vscode a daemon with the old address sends %q there", got)
	}
}

func TestManyLogins(t *testing.T) {
	setup, _ := newSetup(t, "")
	s := providersetup.NewService(setup.Home, setup.Memory)
	var ids []string
	for range 17 {
		begun, err := s.BeginLogin(t.Context(), &protocol.ProviderBeginLoginParams{Name: "chatgpt"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, begun.LoginID)
	}
	for i, want := range map[int]string{0: "no such login", 1: "the pasted address does not start with", 16: "the pasted address does not start with"} {
		if _, err := s.FinishLogin(t.Context(), &protocol.ProviderFinishLoginParams{LoginID: ids[i], Address: "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("part13/vscode login %d of 17: %v, want %q", i+1, err, want)
		}
	}
}
