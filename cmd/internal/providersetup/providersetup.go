// Package providersetup sets up model providers in a data directory: it stores API keys and logins, and writes addresses and the default
// model into config.toml. Commands call it, and the daemon calls it for its clients. Errors and results never contain a key.
package providersetup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/providers"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Setup is the set-up of a data directory. It reads config.toml for each call. It is safe for concurrent use.
type Setup struct {
	Home   string
	Memory *provider.Keys // keys in memory of the daemon that this process is; nil in other processes
}

// open reads config.toml and returns it with the places of keys.
func (s Setup) open() (config.Config, config.KeySources, error) {
	c, err := config.Load(s.Home)
	if err != nil {
		return c, config.KeySources{}, err
	}
	return c, s.sources(c), nil
}

// sources returns where keys come from, with the memory of the daemon if this process is it.
func (s Setup) sources(c config.Config) config.KeySources {
	from := config.OpenKeySources(s.Home, c, "")
	from.Memory = cmp.Or(s.Memory, from.Memory)
	return from
}

// Providers returns the presets and then the other providers of config.toml, by name. It does not look for local servers.
func (s Setup) Providers() ([]protocol.ProviderInfo, error) {
	c, from, err := s.open()
	if err != nil {
		return nil, err
	}
	names := providers.Presets()
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var infos []protocol.ProviderInfo
	for _, name := range names {
		infos = append(infos, infoOf(c, name, from))
	}
	return infos, nil
}

// ProvidersAndLocal is Providers with the models of the servers that run on this machine. It asks only addresses of this machine.
func (s Setup) ProvidersAndLocal(ctx context.Context) ([]protocol.ProviderInfo, error) {
	infos, err := s.Providers()
	if err != nil {
		return nil, err
	}
	c, from, err := s.open()
	if err != nil {
		return nil, err
	}
	for _, l := range providers.FindLocal(ctx, c.Servers(from)) {
		i := slices.IndexFunc(infos, func(p protocol.ProviderInfo) bool { return p.Name == l.Name })
		infos[i].Models, infos[i].KeyWanted = l.Models, l.KeyWanted
		if l.KeyWanted && infos[i].Key != "" {
			infos[i].Models = s.localModels(ctx, l.Name)
		}
	}
	return infos, nil
}

// localModels returns the models of a local server that wants a key; none if the stored key does not work.
func (s Setup) localModels(ctx context.Context, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ids, _ := s.ModelsOf(ctx, name) // the list shows that the server wants a key
	return ids
}

// infoOf returns what lashd knows of a preset or another provider of the configuration.
func infoOf(c config.Config, name string, from config.KeySources) protocol.ProviderInfo {
	preset, known := providers.PresetOf(name)
	return protocol.ProviderInfo{
		Name: name, Title: Title(name), BaseURL: withoutSecrets(cmp.Or(c.Providers[name].BaseURL, preset.BaseURL)), BaseURLForm: preset.BaseURLForm, KeysAt: preset.KeysAt,
		Local: preset.Local, Pasted: !preset.Local && !config.TakesLogin(name) && (!known || len(preset.Env) > 0), Login: config.TakesLogin(name), Key: keyFrom(c, name, from), Stored: from.Store.Has(name),
	}
}

// withoutSecrets returns an address without the parts in which some servers take a key: the user, and the query.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// keyFrom says where the key of a provider comes from, in the order in which the daemon looks; "" if there is none. It reads no key.
func keyFrom(c config.Config, name string, from config.KeySources) string {
	key := c.Providers[name].Key
	inMemory := from.Memory.From(append(slices.Clone(variablesOf(c, name)), name)...)
	switch {
	case inMemory != "" && inMemory != name:
		return inMemory
	case key != nil && key.Env == "" && inMemory == "":
		return "config.toml"
	case from.Store.Has(name):
		return "stored"
	case inMemory != "":
		return "client"
	}
	return ""
}

// Title returns the name of a provider for people.
func Title(name string) string {
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

// Unknown returns an error for a name that is no provider; nil if it is one.
func (s Setup) Unknown(name string) error {
	c, _, err := s.open()
	if err != nil {
		return err
	}
	return unknown(c, name)
}

// unknown is Unknown for a configuration.
func unknown(c config.Config, name string) error {
	if c.Knows(name) {
		return nil
	}
	return fmt.Errorf("unknown provider %q%s; use one of %s, or add [providers.%s] to config.toml", name, config.DidYouMean(name, providers.Presets()), strings.Join(providers.Presets(), ", "), name)
}

// Problem says why no key or login of a known provider can be stored; nil if one can. Ask before a person enters a key.
func (s Setup) Problem(name string) error {
	c, from, err := s.open()
	if err != nil {
		return err
	}
	if err := NoKeyFor(c, name); err != nil {
		return err
	}
	return from.Store.Check()
}

// NoKeyFor says why a known provider cannot have a key; nil if it can.
func NoKeyFor(c config.Config, name string) error {
	if err := noAddress(c, name); err != nil {
		return err
	}
	if preset, _ := providers.PresetOf(name); preset.Local && c.Providers[name].Key == nil {
		return fmt.Errorf("%s needs no key; lash model use %s/ID chooses one of its models, and lash model lists them while it runs", preset.Title, name)
	}
	return nil
}

// noKeyFor is NoKeyFor, except that a local server can have a key if it asks for one.
func noKeyFor(ctx context.Context, c config.Config, name string) error {
	err := NoKeyFor(c, name)
	if preset, _ := providers.PresetOf(name); err == nil || !preset.Local {
		return err
	}
	if wanted, _ := wantsKey(ctx, c, name); wanted {
		return nil
	}
	return err
}

// noAddress returns an error for a provider without an address.
func noAddress(c config.Config, name string) error {
	if c.NoAddress(name) == "" {
		return nil
	}
	return fmt.Errorf("set base_url in [providers.%s] of config.toml first, or use lash login --base-url; %s", name, c.NoAddress(name))
}

// SetDefault writes the key model into config.toml; the rest of the file stays as it is. It changes nothing if the result would not name
// the model. It reports whether a running daemon uses the model only after its restart.
func (s Setup) SetDefault(ctx context.Context, name string) (restart bool, err error) {
	err = config.Edit(ctx, s.Home, func(e *config.Editor) error {
		data, err := e.Read()
		if err != nil {
			return err
		}
		before, err := config.Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", config.File(s.Home), err)
		}
		changed := config.WithModel(data, name)
		after, err := config.Parse(changed)
		if err != nil {
			return fmt.Errorf("%s cannot name %s as its model: %w", config.File(s.Home), name, err)
		}
		if err := uses(after, before, name); err != nil {
			return err
		}
		restart = after.DefaultName() == ""
		return e.Write(changed)
	})
	return restart, err
}

// uses returns an error unless name is the default model of c, and the configured models of before are the same.
func uses(c config.Config, before config.Config, name string) error {
	switch owner, _, _ := strings.Cut(name, "/"); {
	case slices.ContainsFunc(c.Models, func(m config.ModelConfig) bool { return m.ID == "" }):
		return fmt.Errorf("config.toml has [[models]] without id, which take it from the key model; add an id to each of them")
	case c.DefaultName() == name || len(c.Models) == 0 && c.BaseURL != "" && name == before.Model:
		return nil
	case c.Knows(owner) && (c.BaseURL != "" || c.KeyEnv != ""):
		return fmt.Errorf("config.toml has base_url or key_env at its top, so model is an id on that server; move them into a [[models]] or [providers.NAME] table")
	case len(c.Models) == 0 && c.BaseURL != "":
		return nil // an id on the server of base_url
	}
	return fmt.Errorf("no such model: %q; use PROVIDER/ID, such as openai/gpt-5, or a name that lash model lists; lash model providers lists the providers", name)
}
