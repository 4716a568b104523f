package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providers"
	"lashd/cmd/lash/chat"
	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
	"lashd/engine/provider/knownmodels"
	"lashd/rpc/protocol"
)

// keySetup sets up API keys for lash login and the chat. It reads config.toml for each call, and prints nothing. It implements chat.Keys.
type keySetup struct {
	env      *daemon.Environment
	untested bool // store a key without a test
	accounts bool // also providers that take a login in place of a key
}

// Providers lists the presets that need a key and have an address, and the configured providers.
func (k keySetup) Providers() ([]chat.Provider, error) {
	cfg, err := config.Load(k.env.Home)
	if err != nil {
		return nil, err
	}
	var all []chat.Provider
	for _, p := range providerInfos(cfg, config.OpenKeySources(k.env.Home, cfg, "")) {
		if noKeyFor(cfg, p.Name) == "" && (k.accounts || !config.TakesLogin(p.Name)) {
			all = append(all, shown(p))
		}
	}
	return all, nil
}

// shown returns a provider as a person chooses it.
func shown(p providerInfo) chat.Provider {
	states := map[string]string{"": "no key", "stored": "stored key", "config.toml": "key from config.toml"}
	return chat.Provider{Name: p.Name, Title: p.Title, KeysAt: p.KeysAt, State: cmp.Or(states[p.Key], "key in "+p.Key)}
}

// Find implements chat.Keys.
func (k keySetup) Find(_ context.Context, name string) (chat.Provider, error) {
	cfg, err := config.Load(k.env.Home)
	if err != nil {
		return chat.Provider{}, err
	}
	switch {
	case chat.LooksLikeKey(name):
		return chat.Provider{}, console.Exit(console.ExitUsage, errors.New("that looks like an API key, not like the name of a provider; run lash login PROVIDER and enter the key when it asks. Others may have seen this key on your screen or in the history of your shell"))
	case !cfg.Knows(name):
		return chat.Provider{}, console.Exit(console.ExitUsage, fmt.Errorf("unknown provider %q%s; use one of %s, or add [providers.%s] to config.toml", name, config.DidYouMean(name, providers.Presets()), strings.Join(providers.Presets(), ", "), name))
	case config.TakesLogin(name) && !k.accounts:
		return chat.Provider{}, fmt.Errorf("%s takes a login in place of a key; run lash login %s in another terminal. New turns use it at once", titleOf(name), name)
	case noKeyFor(cfg, name) != "":
		return chat.Provider{}, errors.New(noKeyFor(cfg, name))
	}
	from := config.OpenKeySources(k.env.Home, cfg, "")
	if err := from.Store.Check(); err != nil {
		return chat.Provider{}, err // before the person enters a key that cannot be stored
	}
	return shown(infoOf(cfg, name, from)), nil
}

// noKeyFor says why no key can be stored for a known provider; "" if one can.
func noKeyFor(c config.Config, name string) string {
	preset, known := providers.PresetOf(name)
	switch {
	case c.NoAddress(name) != "":
		return fmt.Sprintf("set base_url in [providers.%s] of config.toml first, or use lash login --base-url; %s", name, c.NoAddress(name))
	case known && preset.Local && c.Providers[name].Key == nil:
		return fmt.Sprintf("%s needs no key; lash model use %s/ID chooses one of its models, and lash model lists them while it runs", preset.Title, name)
	}
	return ""
}

// titleOf returns the name of a provider for people.
func titleOf(name string) string {
	if p, ok := providers.PresetOf(name); ok {
		return p.Title
	}
	return name
}

// variablesOf returns the environment variables in which the key of a provider may be.
func variablesOf(c config.Config, name string) []string {
	if key := c.Providers[name].Key; key != nil && key.Env != "" {
		return []string{key.Env}
	}
	p, _ := providers.PresetOf(name)
	return p.Env
}

// Login implements chat.Keys: it tests a key, stores it and hands it to a running daemon.
func (k keySetup) Login(ctx context.Context, name string, entered provider.Secret) ([]string, error) {
	cfg, err := config.Load(k.env.Home)
	if err != nil {
		return nil, err
	}
	key, err := enteredKey(cfg, name, entered.Reveal())
	if err != nil {
		return nil, err
	}
	if !k.untested {
		if err := testKey(ctx, cfg, name, key); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			return nil, fmt.Errorf("the key was not stored, because its test failed: %w", untestable(name, err))
		}
	}
	place, err := config.OpenKeySources(k.env.Home, cfg, "").Store.Set(ctx, name, key)
	if err != nil {
		return nil, fmt.Errorf("the key was not stored: %w", err)
	}
	lines := append(stored("stored the key of "+titleOf(name)+" in", place, name), precedence(cfg, name)...)
	return append(lines, k.hand(ctx, protocol.ModelSetKeyParams{Name: name, Key: key.Reveal()})...), nil
}

// stored says where a key of a provider was stored and, if the keyring did not take it, why.
func stored(what string, place keystore.Place, name string) []string {
	lines := []string{what + " " + cmp.Or(place.File, "the system's keyring")}
	if place.Failed != nil {
		lines = append(lines, fmt.Sprintf("%s. To move it there later, run lash login %s again", place.Failed, name))
	}
	return lines
}

// mostPasted is the largest key that a person can enter, in bytes.
const mostPasted = 8 << 10

// enteredKey returns the key in a text that a person entered or pasted: without white space and quotes around it, and without the
// name of its variable. It rejects a text that is no key, and a key of another provider.
func enteredKey(c config.Config, name, text string) (provider.Secret, error) {
	size := len(text)
	text = strings.TrimPrefix(text, "\ufeff") // which some programs on Windows put before a text
	text = strings.TrimPrefix(strings.TrimSpace(text), "export ")
	if variable, value, ok := strings.Cut(text, "="); ok && slices.Contains(variablesOf(c, name), variable) {
		text = value
	}
	for _, quotes := range []string{`""`, "''", "``", "“”", "‘’"} {
		marks := []rune(quotes)
		if inner, ok := strings.CutPrefix(text, string(marks[0])); ok && strings.HasSuffix(inner, string(marks[1])) {
			text = strings.TrimSpace(strings.TrimSuffix(inner, string(marks[1])))
		}
	}
	odd := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
	switch owner := providers.KeyOwner(text); {
	case text == "":
		return provider.Secret{}, errors.New("no key was entered")
	case size > mostPasted || odd >= 0 && text[odd] <= ' ':
		return provider.Secret{}, errors.New("that is no key: it must be one line without spaces")
	case odd >= 0:
		return provider.Secret{}, fmt.Errorf("that is no key: character %d of it is not on a keyboard. Copy the key again, without the text around it", len([]rune(text[:odd]))+1)
	case owner != "" && owner != name && c.Providers[name].BaseURL == "":
		return provider.Secret{}, fmt.Errorf("that looks like a key of %s, not of %s; lash login %s stores it", titleOf(owner), titleOf(name), owner)
	}
	return provider.NewSecret(text), nil
}

// testKey makes one real call with a key: a small model call if a model of the provider is known, else a request for its list of models.
func testKey(ctx context.Context, c config.Config, name string, key provider.Secret) error {
	memory := provider.NewKeys(func(string) string { return "" })
	memory.Accept(name)
	if err := memory.Hand(name, key); err != nil {
		return err
	}
	source, err := c.Source(config.KeySources{Memory: memory}, config.NotSet)
	if err != nil {
		return err
	}
	m, ok := source.Model(name + "/" + knownmodels.Default(name))
	if ok {
		_, err := tryModel(ctx, m)
		return err
	}
	m, _ = source.Model(name + "/list")
	if issue := m.Problem(ctx); issue != nil {
		return errors.New(issue.Message)
	}
	return nil
}

// untestable adds to an error that says nothing about the key how to store the key anyway.
func untestable(name string, err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok && (e.Kind == provider.KindTransport || e.Kind == provider.KindTimeout) {
		return fmt.Errorf("%w To store the key without a test: lash login --untested %s", err, name)
	}
	return err
}

// precedence names the variables of this shell that count before the stored key.
func precedence(c config.Config, name string) (lines []string) {
	for _, variable := range variablesOf(c, name) {
		if os.Getenv(variable) != "" {
			lines = append(lines, variable+" is set in this shell and counts before the stored key; unset it to use the stored one")
		}
	}
	return lines
}

// hand hands a key to a running daemon, or has it forget one. Without a daemon it does nothing. It returns what went wrong.
func (k keySetup) hand(ctx context.Context, p protocol.ModelSetKeyParams) []string {
	l, err := k.env.Dial(ctx, false, nil)
	if err != nil {
		return nil // the next daemon reads the store
	}
	defer l.Close()
	if err := l.Call(ctx, "model/setKey", p, nil); err != nil {
		return []string{fmt.Sprintf("the running daemon did not take the change: %s; %s", console.Explain(err), daemon.FreshConfig)}
	}
	return nil
}

// Logout implements chat.Keys: it deletes a key from the store and from the memory of the daemon.
func (k keySetup) Logout(ctx context.Context, name string) ([]string, error) {
	cfg, err := config.Load(k.env.Home)
	if err != nil {
		return nil, err
	}
	store := config.OpenKeySources(k.env.Home, cfg, "").Store
	if name == "" {
		names, err := store.Names()
		if err != nil {
			return nil, err
		}
		switch len(names) {
		case 0:
			return nil, errors.New("no key is stored; keys in the environment and in files of your own stay where they are")
		case 1:
			name = names[0]
		default:
			return nil, console.Exit(console.ExitUsage, fmt.Errorf("name the provider; there are stored keys of: %s", strings.Join(names, ", ")))
		}
	}
	had, err := store.Delete(ctx, name)
	if err != nil {
		return nil, err
	}
	if !had {
		return nil, fmt.Errorf("no key of %s is stored", name)
	}
	if config.TakesLogin(name) {
		return []string{"deleted the login of " + titleOf(name)}, nil // the daemon reads the store
	}
	lines := []string{"deleted the key of " + titleOf(name)}
	for _, variable := range variablesOf(cfg, name) {
		if os.Getenv(variable) != "" {
			lines = append(lines, variable+" is still set in this shell")
		}
	}
	return append(lines, k.hand(ctx, protocol.ModelSetKeyParams{Name: name, Forget: true})...), nil
}
