package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lashd/cmd/internal/providers"
	"lashd/engine/provider"
)

// providerConfig is a provider of models. If it has the name of a preset, missing keys have the values of the preset.
type providerConfig struct {
	API       providers.API     `toml:"api"`                    // API of the server: chat (default), responses, anthropic or gemini
	BaseURL   string            `toml:"base_url" is:"url"`      // URL of the server, with /v1 if its API has that; presets for azure, bedrock and vertex have none
	KeyHeader string            `toml:"key_header" is:"header"` // header for the API key, sent as it is; default the API's; Authorization sends "Bearer KEY"
	Headers   map[string]string `toml:"headers"`                // further headers of each request; values are treated as secrets
	Key       *keyConfig        `toml:"key"`                    // where the API key is; exactly one of env, file, command and keyring
	Login     string            `toml:"login" is:"url"`         // URL of the server that logs you in; only chatgpt has one
	Limits    callLimitsConfig  `toml:"limits"`                 // limits of the calls to the server; calls that exceed one wait for their turn
}

// callLimitsConfig limits the calls to a provider, for all of its models together. A missing key sets no limit.
type callLimitsConfig struct {
	Concurrency int64    `toml:"concurrency" from:"1" to:"100000"` // calls at the same time
	Requests    int64    `toml:"requests" from:"1" to:"1000000"`   // calls in a window
	Tokens      int64    `toml:"tokens" from:"1" to:"1000000000"`  // input and output tokens in a window, without those read from a cache
	Window      duration `toml:"window"`                           // length of the window, such as 1m (default) or 24h
}

// limits converts the settings.
func (l callLimitsConfig) limits() provider.Limits {
	return provider.Limits{Concurrency: int(l.Concurrency), Requests: int(l.Requests), Tokens: l.Tokens, Window: l.Window.Duration}
}

// keyConfig refers to an API key. The key itself never stands in config.toml.
type keyConfig struct {
	Env     string `toml:"env" is:"variable"` // name of an environment variable
	File    string `toml:"file"`              // file with only the key; a relative path starts at the data directory
	Command string `toml:"command"`           // shell command that prints the key, such as 'pass show anthropic'
	Keyring string `toml:"keyring"`           // SERVICE/ACCOUNT of an entry in the system's keyring; without a slash, an account of the service lashd
}

// Servers returns the configured providers.
func (c Config) Servers(from KeySources) map[string]providers.Provider {
	all := map[string]providers.Provider{}
	for name, p := range c.Providers {
		made := providers.Provider{API: p.API, BaseURL: p.BaseURL, KeyHeader: p.KeyHeader, NeedKey: p.Key != nil, Login: p.Login, Limits: p.Limits.limits()}
		for header, value := range p.Headers {
			if made.Headers == nil {
				made.Headers = map[string]provider.Secret{}
			}
			made.Headers[header] = provider.NewSecret(value)
		}
		switch {
		case p.Key == nil:
		case p.Key.Env != "":
			made.Env = []string{p.Key.Env}
		default:
			made.Key = from.reader(c, p.Key)
		}
		all[name] = made
	}
	return all
}

// badProviders finds providers without an address and keys with no reference or several.
func (c Config) badProviders() (bad []badValue) {
	for name, p := range c.Providers {
		path := []string{"providers", name}
		if message := c.NoAddress(name); message != "" {
			bad = append(bad, badValue{append(slices.Clone(path), "base_url"), 0, "providers." + name + ".base_url is missing; " + message})
		}
		if p.Key != nil && len(p.Key.references()) != 1 {
			message := "providers." + name + ".key must have exactly one of env, file, command and keyring"
			bad = append(bad, badValue{append(slices.Clone(path), "key"), 0, message})
		}
		if key, message := p.badLogin(name); message != "" {
			bad = append(bad, badValue{append(slices.Clone(path), key), 0, message})
		}
		if name == "" || strings.ContainsAny(name, "/ ") {
			bad = append(bad, badValue{path, 0, fmt.Sprintf("%q cannot be the name of a provider; use letters, digits and hyphens", name)})
		}
	}
	return bad
}

// badLogin finds a login at a provider that takes keys, and a key at a provider that takes a login.
func (p providerConfig) badLogin(name string) (key, message string) {
	preset, _ := providers.PresetOf(name)
	switch {
	case p.Login != "" && preset.Login == "":
		return "login", "providers." + name + ".login has no effect; lashd logs in only to chatgpt"
	case p.Key != nil && preset.Login != "":
		return "key", "providers." + name + ".key has no effect; run lash login " + name
	}
	return "", ""
}

// references returns the references that are set.
func (k *keyConfig) references() []string {
	return slices.DeleteFunc([]string{k.Env, k.File, k.Command, k.Keyring}, func(ref string) bool { return ref == "" })
}

// NoAddress says how to give a provider an address, or returns "" if it has one.
func (c Config) NoAddress(name string) string {
	preset, known := providers.PresetOf(name)
	switch {
	case c.Providers[name].BaseURL != "" || preset.BaseURL != "":
		return ""
	case known:
		return "it has the form " + preset.BaseURLForm
	}
	return "it has the form https://HOST/v1"
}

// badDefault checks the provider that the key model names.
func (c Config) badDefault() []badValue {
	owner, _, _ := strings.Cut(c.Model, "/")
	if !c.namesProvider() {
		return nil
	}
	if _, configured := c.Providers[owner]; configured || c.NoAddress(owner) == "" {
		return nil // badProviders reports it
	}
	return []badValue{{[]string{"model"}, 0, fmt.Sprintf("model needs providers.%s.base_url; %s", owner, c.NoAddress(owner))}}
}

// badModel finds settings of a model that contradict each other or lack something.
func (c Config) badModel(m ModelConfig) (key, message string) {
	_, configured := c.Providers[m.Provider]
	switch {
	case m.Provider != "" && cmp.Or(m.BaseURL, m.KeyEnv, string(m.API)) != "":
		return "provider", fmt.Sprintf("models.provider excludes base_url, key_env and api; set them in [providers.%s]", m.Provider)
	case m.Provider != "" && !c.Knows(m.Provider):
		known := append(providers.Presets(), slices.Sorted(maps.Keys(c.Providers))...)
		return "provider", fmt.Sprintf("models.provider %q is unknown%s; add [providers.%s], or use one of %s", m.Provider, DidYouMean(m.Provider, known), m.Provider, strings.Join(known, ", "))
	case m.Provider != "" && !configured && c.NoAddress(m.Provider) != "":
		return "provider", fmt.Sprintf("models.provider needs providers.%s.base_url; %s", m.Provider, c.NoAddress(m.Provider))
	case m.ID == "" && (m.Provider != "" || c.namesProvider()):
		return "id", "models.id is missing"
	case m.ContextWindow > 0 && m.OutputLimit > m.ContextWindow:
		return "output_limit", fmt.Sprintf("models.output_limit is %d; it must not exceed models.context_window (%d)", m.OutputLimit, m.ContextWindow)
	}
	return c.badEffort(m)
}

// badEffort finds reasoning settings that do not fit the efforts of a model. Without efforts, those of the known model count.
func (c Config) badEffort(m ModelConfig) (key, message string) {
	efforts := m.Efforts
	if known, ok := providers.Known(m.Provider, m.ID); ok && efforts == nil && known.Spec.Reasoning != nil {
		efforts = known.Spec.Reasoning.Efforts
	}
	for _, set := range []struct{ key, effort string }{{"effort", m.Effort}, {"default_effort", m.DefaultEffort}} {
		if set.effort != "" && !slices.Contains(efforts, set.effort) {
			return set.key, fmt.Sprintf("models.%s is %q; it must be one of models.efforts (%s)", set.key, set.effort, cmp.Or(strings.Join(efforts, ", "), "not set"))
		}
	}
	switch {
	case m.Efforts != nil:
		return "", ""
	case m.DefaultEffort != "":
		return "default_effort", "models.default_effort needs models.efforts"
	case m.Encoding != "":
		return "reasoning_encoding", "models.reasoning_encoding needs models.efforts"
	}
	return "", ""
}

// badFallback finds a fallback that is not a model, or that is the model itself.
func (c Config) badFallback(m ModelConfig) string {
	named := func(other ModelConfig) bool { return c.nameOf(other) == m.Fallback }
	owner, id, ok := strings.Cut(m.Fallback, "/")
	switch {
	case m.Fallback == "":
	case m.Fallback == c.nameOf(m):
		return "models.fallback must name another model"
	case !slices.ContainsFunc(c.Models, named) && !(ok && id != "" && c.Knows(owner)):
		return fmt.Sprintf("models.fallback %q is unknown; use the name of one of models or PROVIDER/ID", m.Fallback)
	}
	return ""
}
