package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providersetup"
	"lashd/cmd/lash/chat"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// keySetup sets up API keys for lash login and the chat, and tells a running daemon about them. It prints nothing. It implements chat.Keys.
type keySetup struct {
	env      *daemon.Environment
	baseURL  string // address to write into config.toml; "": it stays
	untested bool   // store a key without a test
	accounts bool   // also providers that take a login in place of a key
}

// setup is the set-up of the data directory.
func (k keySetup) setup() providersetup.Setup { return providersetup.Setup{Home: k.env.Home} }

// Providers lists the presets that need a key and have an address, and the configured providers.
func (k keySetup) Providers() ([]chat.Provider, error) {
	infos, err := k.setup().Providers()
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(k.env.Home)
	if err != nil {
		return nil, err
	}
	var all []chat.Provider
	for _, p := range infos {
		if providersetup.NoKeyFor(cfg, p.Name) == nil && (k.accounts || !p.Login) {
			all = append(all, shown(p))
		}
	}
	return all, nil
}

// shown returns a provider as a person chooses it.
func shown(p protocol.ProviderInfo) chat.Provider {
	states := map[string]string{"": "no key", "stored": "stored key", "config.toml": "key from config.toml"}
	return chat.Provider{Name: p.Name, Title: p.Title, KeysAt: p.KeysAt, State: cmp.Or(states[p.Key], "key in "+p.Key)}
}

// Find implements chat.Keys.
func (k keySetup) Find(_ context.Context, name string) (chat.Provider, error) {
	if chat.LooksLikeKey(name) {
		return chat.Provider{}, console.Exit(console.ExitUsage, errors.New("that looks like an API key, not like the name of a provider; run lash login PROVIDER and enter the key when it asks. Others may have seen this key on your screen or in the history of your shell"))
	}
	if k.baseURL != "" {
		return chat.Provider{Name: name, Title: providersetup.Title(name)}, nil // config.toml may lack its address
	}
	if err := k.setup().Unknown(name); err != nil {
		return chat.Provider{}, console.Exit(console.ExitUsage, err)
	}
	if config.TakesLogin(name) && !k.accounts {
		return chat.Provider{}, fmt.Errorf("%s takes a login in place of a key; run lash login %s in another terminal. New turns use it at once", providersetup.Title(name), name)
	}
	if err := k.setup().Problem(name); err != nil {
		return chat.Provider{}, err // before the person enters a key that cannot be stored
	}
	return k.find(name)
}

// find returns a provider of the list.
func (k keySetup) find(name string) (chat.Provider, error) {
	infos, err := k.setup().Providers()
	for _, p := range infos {
		if p.Name == name {
			return shown(p), nil
		}
	}
	return chat.Provider{Name: name, Title: name}, err
}

// Login implements chat.Keys: it tests a key, stores it and hands it to a running daemon.
func (k keySetup) Login(ctx context.Context, name string, entered provider.Secret) ([]string, error) {
	place, key, err := k.setup().SetKey(ctx, providersetup.Key{Provider: name, Text: entered, BaseURL: k.baseURL, Untested: k.untested})
	if providersetup.Unreachable(err) {
		return nil, fmt.Errorf("%w To store the key without a test: lash login --untested %s", err, name)
	}
	if err != nil {
		return nil, err
	}
	lines := stored("stored the key of "+providersetup.Title(name)+" in", place, name)
	for _, variable := range place.UsedFirst {
		lines = append(lines, variable+" is set in this shell and counts before the stored key; unset it to use the stored one")
	}
	return append(lines, k.hand(ctx, protocol.ModelSetKeyParams{Name: name, Key: key.Reveal()}, place.Restart)...), nil
}

// stored says where a key of a provider was stored and, if the keyring did not take it, why.
func stored(what string, place protocol.StoredKey, name string) []string {
	lines := []string{what + " " + cmp.Or(place.File, "the system's keyring")}
	if place.KeyringProblem != "" {
		lines = append(lines, fmt.Sprintf("%s. To move it there later, run lash login %s again", place.KeyringProblem, name))
	}
	return lines
}

// hand hands a key to a running daemon, or has it forget one. Without a daemon it does nothing. moved means that the key is for another
// address than before: a daemon with older settings would send it to the earlier one, so it only forgets an earlier key. hand returns what
// went wrong.
func (k keySetup) hand(ctx context.Context, p protocol.ModelSetKeyParams, moved bool) []string {
	l, err := k.env.Dial(ctx, false, nil)
	if err != nil {
		return nil // the next daemon reads the store
	}
	defer l.Close()
	if !p.Forget && (moved || l.Stale(ctx)) {
		_ = l.Call(ctx, "model/setKey", protocol.ModelSetKeyParams{Name: p.Name, Forget: true}, nil) // a daemon that does not know the provider has no key of it
		return []string{"config.toml changed after the daemon started; " + daemon.FreshConfig}
	}
	if err := l.Call(ctx, "model/setKey", p, nil); err != nil {
		return []string{fmt.Sprintf("the running daemon did not take the change: %s; %s", console.Explain(err), daemon.FreshConfig)}
	}
	return nil
}

// Logout implements chat.Keys: it deletes a key from the store and from the memory of the daemon.
func (k keySetup) Logout(ctx context.Context, name string) ([]string, error) {
	name, err := k.onlyStored(name)
	if err != nil {
		return nil, err
	}
	variables, err := k.setup().RemoveKey(ctx, name)
	if err != nil {
		return nil, err
	}
	if config.TakesLogin(name) {
		return []string{"deleted the login of " + providersetup.Title(name)}, nil
	}
	lines := []string{"deleted the key of " + providersetup.Title(name)}
	for _, variable := range variables {
		lines = append(lines, variable+" is still set in this shell")
	}
	return append(lines, k.hand(ctx, protocol.ModelSetKeyParams{Name: name, Forget: true}, false)...), nil
}

// onlyStored returns a name, or for "" that of the only provider with a stored key.
func (k keySetup) onlyStored(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	names, err := k.setup().Stored()
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", errors.New("no key is stored; keys in the environment and in files of your own stay where they are")
	case len(names) > 1:
		return "", console.Exit(console.ExitUsage, fmt.Errorf("name the provider; there are stored keys of: %s", strings.Join(names, ", ")))
	}
	return names[0], nil
}
