package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"lashd/cmd/internal/providers"
	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
)

// keySources are the places in which the daemon and commands look for API keys.
type keySources struct {
	memory *provider.Keys
	store  *keystore.Store   // keys that lashd login stored
	ring   *keystore.Keyring // for references of config.toml
	dir    string            // data directory, in which key commands run
	nonce  string            // marks the processes of key commands

	model func() string // name of the default model now; nil: that of the configuration
}

// defaultName returns a function that returns the name of the default model.
func (s keySources) defaultName(c config) func() string {
	if s.model != nil {
		return s.model
	}
	return c.defaultName
}

// keySources returns the sources of this data directory. nonce is empty outside of the daemon.
func (e *environment) keySources(c config, nonce string) keySources {
	ring := keystore.NewKeyring(os.Getenv)
	return keySources{memory: c.keys(os.Getenv), store: keystore.New(e.home, ring), ring: ring, dir: e.home, nonce: nonce}
}

// reader returns a function that reads the key of a reference in config.toml. A key command gets the environment of lashd without API
// keys: a password manager needs the variables that commands of agents do not get.
func (s keySources) reader(c config, key *keyConfig) providers.KeyReader {
	ref := keystore.Reference{
		File: key.File, Command: key.Command, Keyring: key.Keyring, Dir: s.dir, Environ: c.environ(os.Environ()), Nonce: s.nonce,
	}
	return ref.Reader(s.ring)
}

// handKeys sends the daemon the API keys that it lacks and that the environment of
// this process has. The daemon keeps them in memory only. Commands that start
// turns call it, so that a daemon works without a key in its own environment.
func (e *environment) handKeys(ctx context.Context, l *link) error {
	return l.reason(l.HandKeys(context.WithoutCancel(ctx), l.daemon.KeysWanted, os.Getenv))
}

// notSet says what to do about a key that is not in the environment.
func notSet(name string, variables []string) string {
	if len(variables) == 0 {
		return "run lashd login " + name
	}
	if _, ok := providers.PresetOf(name); !ok {
		return strings.Join(variables, " or ") + " is not set; export it"
	}
	return fmt.Sprintf("%s is not set; export it, or run lashd login %s", strings.Join(variables, " or "), name)
}

// notSetAtStart returns a function that says what to do about a key that the
// daemon lacks; started is the start time of the daemon.
func notSetAtStart(started time.Time) func(name string, variables []string) string {
	return func(name string, variables []string) string {
		if _, ok := providers.PresetOf(name); ok {
			return "run lashd login " + name
		}
		return fmt.Sprintf(`%s was not set when the daemon started (%s). Export it and use lashd run or lashd chat in the same shell; `+
			`both pass the key to the daemon. For another model server, set base_url in config.toml and restart the daemon: lashd call shutdown '{"daemon":true}'`, strings.Join(variables, " or "), started.Format(time.DateTime))
	}
}
