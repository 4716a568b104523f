package config

import (
	"fmt"
	"os"
	"strings"

	"lashd/cmd/internal/providers"
	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
)

// KeySources are the places in which the daemon and commands look for API keys.
type KeySources struct {
	Memory *provider.Keys
	Store  *keystore.Store   // keys that lash login stored
	ring   *keystore.Keyring // for references of config.toml
	dir    string            // data directory, in which key commands run
	nonce  string            // marks the processes of key commands

	Model func() string // name of the default model now; nil: that of the configuration
}

// defaultName returns a function that returns the name of the default model.
func (s KeySources) defaultName(c Config) func() string {
	if s.Model != nil {
		return s.Model
	}
	return c.DefaultName
}

// OpenKeySources returns the sources of a data directory. nonce is empty outside of the daemon.
func OpenKeySources(home string, c Config, nonce string) KeySources {
	ring := keystore.NewKeyring(os.Getenv)
	return KeySources{Memory: c.keys(os.Getenv), Store: keystore.New(home, ring), ring: ring, dir: home, nonce: nonce}
}

// OpenServerLogins returns the store of the OAuth logins to MCP servers. It has a file of its own, so that they are no API keys.
func OpenServerLogins(home string) *keystore.Store {
	s := keystore.New(home, keystore.NewKeyring(os.Getenv))
	s.Name, s.Again = "mcp-logins.json", "lash mcp login"
	return s
}

// reader returns a function that reads the key of a reference in config.toml. A key command gets the environment of lashd without API
// keys: a password manager needs the variables that commands of agents do not get.
func (s KeySources) reader(c Config, key *keyConfig) providers.KeyReader {
	ref := keystore.Reference{
		File: key.File, Command: key.Command, Keyring: key.Keyring, Dir: s.dir, Environ: c.Environ(os.Environ()), Nonce: s.nonce,
	}
	return ref.Reader(s.ring)
}

// NotSet says what to do about a key that is not in the environment.
func NotSet(name string, variables []string) string {
	if len(variables) == 0 {
		return "run lash login " + name
	}
	if _, ok := providers.PresetOf(name); !ok {
		return strings.Join(variables, " or ") + " is not set; export it"
	}
	return fmt.Sprintf("%s is not set; export it, or run lash login %s", strings.Join(variables, " or "), name)
}
