package keystore_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
	"lashd/test/skip"
)

// noKeyring is an environment without a keyring.
func noKeyring(name string) string {
	return map[string]string{"LASHD_KEYRING": "off"}[name]
}

func newStore(t *testing.T) *keystore.Store {
	return keystore.New(filepath.Join(t.TempDir(), "data"), keystore.NewKeyring(noKeyring))
}

// mustHave fails the test unless the store returns the wanted key of a provider, "" for none.
func mustHave(t *testing.T, s *keystore.Store, name, want string) {
	t.Helper()
	key, err := s.Key(t.Context(), name)
	if err != nil || key.Reveal() != want || s.Has(name) != (want != "") {
		t.Errorf("key of %s: %q, has %t, %v; want %q", name, key.Reveal(), s.Has(name), err, want)
	}
}

func TestStoreWithoutKeyring(t *testing.T) {
	s := newStore(t)
	t.Run("issue/18 a missing file has no keys", func(t *testing.T) { mustHave(t, s, "openai", "") })
	t.Run("issue/18 keys go to the file, one for each provider", func(t *testing.T) {
		for name, key := range map[string]string{"openai": "key-one", "anthropic": "key-two"} {
			if place, err := s.Set(t.Context(), name, provider.NewSecret(key)); place.File != s.Path() || place.Failed != nil || err != nil {
				t.Fatalf("%+v, %v", place, err)
			}
		}
		mustHave(t, s, "openai", "key-one")
		mustHave(t, s, "anthropic", "key-two")
		mustHave(t, s, "google", "")
	})
	t.Run("issue/18 only the owner can read the file", func(t *testing.T) {
		info, err := os.Stat(s.Path())
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Path()), "*.next")); len(left) > 0 {
			t.Errorf("temporary files are left: %q", left)
		}
	})
	t.Run("issue/18 a deleted key is gone and the others stay", func(t *testing.T) {
		if had, err := s.Delete(t.Context(), "openai"); !had || err != nil {
			t.Errorf("had %t, %v", had, err)
		}
		if had, err := s.Delete(t.Context(), "openai"); had || err != nil {
			t.Errorf("had %t, %v", had, err)
		}
		mustHave(t, s, "openai", "")
		mustHave(t, s, "anthropic", "key-two")
	})
}

func TestStoreRefusesFiles(t *testing.T) {
	t.Run("issue/18 a file that holds null has no keys, and a key can be stored", func(t *testing.T) {
		s := newStore(t)
		write(t, s.Path(), "null", 0o600)
		if _, err := s.Set(t.Context(), "openai", provider.NewSecret("key-one")); err != nil {
			t.Fatal(err)
		}
		mustHave(t, s, "openai", "key-one")
	})
	for text, want := range map[string]string{
		`{"openai": {"key": "sk-hunter22"}`: "invalid JSON",
		`{"openai": "sk-hunter22"}`:         "invalid JSON",
	} {
		t.Run("issue/18 a damaged file is an error without the key: "+text, func(t *testing.T) {
			s := newStore(t)
			write(t, s.Path(), text, 0o600)
			if _, err := s.Key(t.Context(), "openai"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22") {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	t.Run("issue/18 a file that others can read is refused, also for writing", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			skip.Unless(t, "POSIX", false, "Windows has no file modes")
		}
		s := newStore(t)
		write(t, s.Path(), `{"openai": {"key": "sk-hunter22"}}`, 0o644)
		if _, err := s.Key(t.Context(), "openai"); err == nil || !strings.Contains(err.Error(), "has mode 0644") {
			t.Errorf("%v", err)
		}
		if _, err := s.Set(t.Context(), "openai", provider.NewSecret("x")); err == nil || s.Has("openai") {
			t.Errorf("%v", err)
		}
		write(t, s.Path(), `{"openai": {"key": "sk-hunter22"}}`, 0o600)
		other := filepath.Join(t.TempDir(), "notes.txt")
		if err := os.Link(s.Path(), other); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Key(t.Context(), "openai"); err == nil || !strings.Contains(err.Error(), "has 2 names (hard links)") {
			t.Errorf("part13/6 a file with another name: %v", err)
		}
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
		if key, err := s.Key(t.Context(), "openai"); err != nil || key.Reveal() != "sk-hunter22" {
			t.Errorf("part13/6 a file whose other name was removed: %q, %v", key.Reveal(), err)
		}
	})
	t.Run("issue/18 a key in a keyring that does not answer is an error that says what to do", func(t *testing.T) {
		s := newStore(t)
		write(t, s.Path(), `{"openai": {"keyring": true}}`, 0o600)
		if _, err := s.Key(t.Context(), "openai"); !errors.Is(err, keystore.ErrNoKeyring) || !strings.Contains(err.Error(), "lash login openai") {
			t.Errorf("%v", err)
		}
		if !s.Has("openai") {
			t.Error("the store says that it has no key")
		}
	})
}

func TestKeyringIsOff(t *testing.T) {
	t.Run("issue/18 without a bus no keyring is started", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			skip.Unless(t, "LINUX", false, "only Linux finds its keyring by a bus")
		}
		ring := keystore.NewKeyring(func(string) string { return "" })
		if _, err := ring.Get(t.Context(), "lashd", "x"); !errors.Is(err, keystore.ErrNoKeyring) || !strings.Contains(err.Error(), "DBUS_SESSION_BUS_ADDRESS is not set") {
			t.Errorf("%v", err)
		}
	})
	t.Run("issue/18 a bus that does not exist is no keyring", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			skip.Unless(t, "LINUX", false, "only Linux finds its keyring by a bus")
		}
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "bus"))
		s := keystore.New(t.TempDir(), keystore.NewKeyring(os.Getenv))
		if place, err := s.Set(t.Context(), "openai", provider.NewSecret("k")); place.File != s.Path() || !errors.Is(place.Failed, keystore.ErrNoKeyring) || err != nil {
			t.Errorf("%+v, %v", place, err)
		}
	})
}

// write writes a file with a mode, and its directory.
func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
