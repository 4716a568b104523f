package config

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"

	"lashd/cmd/internal/providers"
	"lashd/engine/models"
	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// ModelConfig is a model that sessions can use. Without provider, its server is that of base_url. Missing keys have the values of the
// top-level keys, and the rest comes from the table of known models.
type ModelConfig struct {
	Name          string                     `toml:"name"`                                    // name for --model and session settings; default the id, with provider PROVIDER/ID
	Provider      string                     `toml:"provider"`                                // name of a preset, such as anthropic, or of one of providers; excludes base_url, key_env and api
	ID            string                     `toml:"id"`                                      // model id on the server
	BaseURL       string                     `toml:"base_url" is:"url"`                       // URL of the model server, with /v1 if its API has that; default the top-level base_url
	KeyEnv        string                     `toml:"key_env" is:"variable"`                   // name of the environment variable with the API key; default the top-level key_env
	API           providers.API              `toml:"api"`                                     // API of the server at base_url: chat (default), responses, anthropic or gemini
	ContextWindow int64                      `toml:"context_window" from:"1" to:"1000000000"` // context window in tokens; if unknown, history is not compacted automatically
	OutputLimit   int64                      `toml:"output_limit" from:"1" to:"1000000000"`   // longest reply in tokens
	Inputs        []protocol.Modality        `toml:"inputs"`                                  // what the model reads besides text: image, pdf; text alone means only text
	Effort        string                     `toml:"effort"`                                  // reasoning effort of new sessions; one of efforts
	Efforts       []string                   `toml:"efforts"`                                 // reasoning efforts of the model; off turns reasoning off
	DefaultEffort string                     `toml:"default_effort"`                          // reasoning effort that the model uses if a request names none; one of efforts
	Encoding      protocol.ReasoningEncoding `toml:"reasoning_encoding"`                      // how a request names the effort: effort (default) as a word, budget as a number of tokens
	Cache         protocol.CacheRetention    `toml:"cache"`                                   // how long the server may keep the beginning of a prompt: none, short (default) or long
	Idempotent    bool                       `toml:"idempotent"`                              // repeat a failed call even after the reply began
	Fallback      string                     `toml:"fallback"`                                // name of the model to use while this one fails
	Price         *priceConfig               `toml:"price"`                                   // price of the model
}

// Environ returns the environment for commands of agents: all without the API keys of presets and those that config.toml names. A
// password or a query in OPENAI_BASE_URL is a key, too.
func (c Config) Environ(all []string) []string {
	keys := append(providers.KeyVariables(), c.keyVariables()...)
	return slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return slices.Contains(keys, name) || name == "OPENAI_BASE_URL" && strings.ContainsAny(value, "@?")
	})
}

// keyVariables returns the environment variables with API keys that config.toml names.
func (c Config) keyVariables() []string {
	names := []string{c.KeyEnv}
	for _, m := range c.Models {
		names = append(names, m.KeyEnv)
	}
	for _, p := range c.Providers {
		if p.Key != nil {
			names = append(names, p.Key.Env)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// listed returns the configured models, the default first. The top-level keys make one model if there are no others and model does
// not name a provider. Without any of them there is none: the providers that have a key decide.
func (c Config) listed() []ModelConfig {
	unset := c.Script == "" && cmp.Or(c.Model, c.BaseURL, c.KeyEnv, os.Getenv("OPENAI_BASE_URL")) == ""
	if len(c.Models) > 0 || c.namesProvider() || unset {
		return c.Models
	}
	return []ModelConfig{{}}
}

// namesProvider reports whether the key model has the form PROVIDER/ID of a known provider. With base_url or key_env, it is the id
// on that server instead, which may contain a slash as well.
func (c Config) namesProvider() bool {
	owner, id, ok := strings.Cut(c.Model, "/")
	return ok && id != "" && c.BaseURL == "" && c.KeyEnv == "" && c.Knows(owner)
}

// Knows reports whether a name is that of a preset or of a configured provider.
func (c Config) Knows(name string) bool {
	_, preset := providers.PresetOf(name)
	_, configured := c.Providers[name]
	return preset || configured
}

// DefaultName returns the name of the default model, or "" if config.toml names none.
func (c Config) DefaultName() string {
	named := slices.ContainsFunc(c.Models, func(m ModelConfig) bool { return c.nameOf(m) == c.Model })
	if c.Model != "" && (named || c.namesProvider()) {
		return c.Model
	}
	return ""
}

// keys reads the API keys of all models and presets from the environment.
func (c Config) keys(getenv func(string) string) *provider.Keys {
	var names []string
	if c.Script == "" {
		names = append(providers.KeyVariables(), c.keyVariables()...)
		for _, m := range c.listed() {
			names = append(names, c.keyOf(m))
		}
	}
	keys := provider.NewKeys(getenv, names...)
	if c.Script == "" {
		names := append(providers.Presets(), slices.Collect(maps.Keys(c.Providers))...)
		keys.Accept(slices.DeleteFunc(names, TakesLogin)...)
	}
	return keys
}

// TakesLogin reports whether a provider takes a login in place of a key.
func TakesLogin(name string) bool {
	preset, _ := providers.PresetOf(name)
	return preset.Login != ""
}

// Source returns the models that sessions can use. noKey returns the advice for a missing key of a provider, which may be in one of
// some environment variables.
func (c Config) Source(from KeySources, noKey func(name string, variables []string) string) (models.Source, error) {
	if c.Script != "" {
		return c.scripted()
	}
	set := providers.Config{
		Default: from.defaultName(c), Keys: providers.KeyRing{Keys: from.Memory, Store: from.Store}, Policy: provider.Policy{DownFor: c.ServerDown.Duration},
		Providers: c.Servers(from), NoKey: noKey,
	}
	if from.Store != nil {
		set.Logins = from.Store
	}
	for _, m := range c.listed() {
		set.Models = append(set.Models, c.model(m, set.Providers))
	}
	return providers.New(set), nil
}

// scripted returns the configured models with replies from a script.
func (c Config) scripted() (models.Source, error) {
	s, err := scripted.Load(c.Script)
	if err != nil {
		return nil, err
	}
	var all models.Fixed
	for _, m := range c.listed() {
		made := c.model(m, map[string]providers.Provider{})
		spec := made.Spec
		spec.Provider, spec.ID = "scripted", made.ID
		name := made.Name
		if c.Models == nil {
			name, spec.ID = "scripted", "scripted"
		}
		all = append(all, models.Model{Name: name, Spec: spec, Provider: scripted.New(s), Price: made.Price})
	}
	return all, nil
}

// idOf returns the id of a model on its server.
func (c Config) idOf(m ModelConfig) string { return cmp.Or(m.ID, c.Model, "gpt-5") }

// nameOf returns the name of a model.
func (c Config) nameOf(m ModelConfig) string {
	if m.Name == "" && m.Provider != "" {
		return m.Provider + "/" + m.ID
	}
	return cmp.Or(m.Name, c.idOf(m))
}

// ofOpenAI is the server that always needs a key. Local servers usually need none.
const ofOpenAI = "https://api.openai.com"

// keyOf returns the name of the environment variable with the API key of a model without provider.
func (c Config) keyOf(m ModelConfig) string { return cmp.Or(m.KeyEnv, c.KeyEnv, "OPENAI_API_KEY") }

// model returns a configured model and adds the server that it names to known.
func (c Config) model(m ModelConfig, known map[string]providers.Provider) providers.Model {
	if m.ID == "" {
		m.Price = cmp.Or(m.Price, c.Price)
	}
	server := m.Provider
	if server == "" {
		server = c.addServer(m, known)
	}
	return providers.Model{
		Name: c.nameOf(m), Provider: server, ID: c.idOf(m), Price: m.Price.price(), Fallback: m.Fallback,
		Spec: protocol.ModelSpec{
			ContextWindow: m.ContextWindow, OutputLimit: m.OutputLimit, Inputs: m.Inputs, Effort: m.Effort, Reasoning: m.reasoning(),
			Cache: m.Cache, Idempotent: m.Idempotent,
		},
	}
}

// reasoning returns the reasoning efforts of a model; nil if efforts is not set.
func (m ModelConfig) reasoning() *protocol.ReasoningSpec {
	if m.Efforts == nil {
		return nil
	}
	return &protocol.ReasoningSpec{Efforts: m.Efforts, Default: m.DefaultEffort, Encoding: m.Encoding}
}

// addServer adds the server of a model without provider to known and returns its name there. That is its address, with the key or the
// API if other models use the same address differently.
func (c Config) addServer(m ModelConfig, known map[string]providers.Provider) string {
	base := cmp.Or(m.BaseURL, c.BaseURL, os.Getenv("OPENAI_BASE_URL"), ofOpenAI+"/v1")
	api, keyEnv := cmp.Or(m.API, providers.Chat), c.keyOf(m)
	server := endpoint.Shown(base)
	if other, ok := known[server]; ok && other.API != api {
		server += " (" + string(api) + ")"
	}
	if other, ok := known[server]; ok && other.Env[0] != keyEnv {
		server += " with " + keyEnv
	}
	known[server] = providers.Provider{
		API: api, BaseURL: base, Env: []string{keyEnv}, NeedKey: strings.HasPrefix(base, ofOpenAI+"/"), KeyName: presetAt(base),
	}
	return server
}

// presetAt returns the name of the preset with an address, whose stored key a model with that address uses. It returns "" if there is none.
func presetAt(base string) string {
	for _, name := range providers.Presets() {
		if p, _ := providers.PresetOf(name); p.BaseURL != "" && p.BaseURL == strings.TrimSuffix(base, "/") {
			return name
		}
	}
	return ""
}
