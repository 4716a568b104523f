package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lashd/cmd/lashd/providers"
	"lashd/engine"
	"lashd/engine/proc"
	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/scripted"
	"lashd/engine/undo"
	"lashd/pluginloader"
	"lashd/rpc/protocol"
)

// config is config.toml of the data directory. All keys are optional. The daemon reads the file when it starts.
type config struct {
	Model        string                   `toml:"model"`                 // model id on the server; default gpt-5
	BaseURL      string                   `toml:"base_url" is:"url"`     // URL of an OpenAI-compatible server, with /v1; default $OPENAI_BASE_URL or OpenAI
	KeyEnv       string                   `toml:"key_env" is:"variable"` // name of the environment variable with the API key; default OPENAI_API_KEY
	Script       string                   `toml:"script"`                // script file that replaces the model, for tests
	Approval     protocol.ApprovalMode    `toml:"approval"`              // decision for tool calls that no rule covers: ask, allow or deny; by default, read-only calls are allowed and others ask
	Trace        bool                     `toml:"trace"`                 // write all model calls to trace.jsonl in the data directory
	ParkAfter    duration                 `toml:"park_after"`            // time after which an unused session is unloaded from memory, such as 90s, 10m or 2h; it is reloaded on next use
	Models       []modelConfig            `toml:"models"`                // models that sessions can use; the first is the default
	Plugins      map[string]any           `toml:"plugins"`               // options of plugins by plugin name; each plugin defines its own options
	Sandbox      pluginloader.SandboxMode `toml:"sandbox"`               // sandbox for plugins that request one: on (default), off, or required to refuse plugins that cannot be sandboxed
	Replace      []string                 `toml:"replace"`               // built-in plugins to replace with your plugin of the same name
	PluginLimits limitsConfig             `toml:"plugin_limits"`         // default limits for plugin programs
	Undo         undoConfig               `toml:"undo"`                  // limits of the file copies for undo
	Price        *priceConfig             `toml:"price"`                 // price of the model that the key model names
	ServerDown   duration                 `toml:"server_down_for"`       // time to retry a model server that refuses connections before the turn fails, such as 10m; default 3s
}

// duration is a duration in config.toml, such as "90s", "10m" or "2h".
type duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts durations from one second to a year.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < time.Second || v > 365*24*time.Hour {
		return fmt.Errorf("%q must be a duration from 1s to 8760h, such as 10m", text)
	}
	d.Duration = v
	return nil
}

// limitsConfig has the limits of plugin programs that declare none themselves. A missing key means the default of lashd; 0 means no limit.
type limitsConfig struct {
	MemoryMiB *int64 `toml:"memory_mib" from:"16" to:"65536"`   // memory of a program in MiB; 0 for no limit
	Processes *int64 `toml:"processes" from:"1" to:"1048576"`   // processes and threads of your user; 0 for no limit
	OpenFiles *int64 `toml:"open_files" from:"16" to:"1048576"` // open files of a program; 0 for no limit
	FileMiB   *int64 `toml:"file_mib" from:"1" to:"1048576"`    // largest file that a program can write, in MiB; 0 for no limit
}

// undoConfig has the limits of the file copies for undo. 0 means the default of the engine.
type undoConfig struct {
	Off       bool  `toml:"off"`                              // keep no copies; file changes cannot be undone
	BudgetMiB int64 `toml:"budget_mib" from:"1" to:"1048576"` // total size of all copies in MiB; 0 for the default
	FileKiB   int64 `toml:"file_kib" from:"1" to:"65536"`     // largest file to copy, in KiB; 0 for the default
	Files     int64 `toml:"files" from:"1" to:"1000000"`      // files to track per workspace; 0 for the default
}

// limits converts the settings to bytes.
func (c undoConfig) limits() undo.Limits {
	return undo.Limits{Off: c.Off, Budget: c.BudgetMiB << 20, FileSize: c.FileKiB << 10, Files: int(c.Files)}
}

// limits converts the settings to bytes and fills in defaults.
func (c limitsConfig) limits() proc.Limits {
	l := pluginloader.DefaultLimits
	for _, set := range []struct {
		to   *int64
		said *int64
		unit int64
	}{{&l.Memory, c.MemoryMiB, 1 << 20}, {&l.Processes, c.Processes, 1}, {&l.OpenFiles, c.OpenFiles, 1}, {&l.FileSize, c.FileMiB, 1 << 20}} {
		if set.said != nil {
			*set.to = *set.said * set.unit
		}
	}
	return l
}

// modelConfig is a model that sessions can use. Missing keys have the values of the top-level keys.
type modelConfig struct {
	Name          string       `toml:"name"`                                    // name for --model and session settings; default the id
	ID            string       `toml:"id"`                                      // model id on the server
	BaseURL       string       `toml:"base_url" is:"url"`                       // URL of an OpenAI-compatible server, with /v1; default the top-level base_url
	KeyEnv        string       `toml:"key_env" is:"variable"`                   // name of the environment variable with the API key; default the top-level key_env
	ContextWindow int64        `toml:"context_window" from:"1" to:"1000000000"` // context window in tokens; if unset, history is not compacted automatically
	OutputLimit   int64        `toml:"output_limit" from:"1" to:"1000000000"`   // longest reply in tokens
	Price         *priceConfig `toml:"price"`                                   // price of the model
}

// priceConfig is the price of a model in US dollars per million tokens.
type priceConfig struct {
	Input  *float64 `toml:"input" to:"10000" required:"true"`  // input tokens
	Output *float64 `toml:"output" to:"10000" required:"true"` // output tokens
	Cached *float64 `toml:"cached" to:"10000"`                 // input tokens read from a cache; default the price of input
}

// price converts p; nil stays nil.
func (p *priceConfig) price() *protocol.Price {
	if p == nil {
		return nil
	}
	return &protocol.Price{Input: *p.Input, Output: *p.Output, Cached: *cmp.Or(p.Cached, p.Input)}
}

// configFile returns the path of config.toml, which need not exist.
func (e *environment) configFile() string { return filepath.Join(e.home, "config.toml") }

// config reads config.toml. A missing file has no settings.
func (e *environment) config() (config, error) {
	data, err := os.ReadFile(e.configFile())
	if errors.Is(err, os.ErrNotExist) {
		return config{}, nil
	}
	if err != nil {
		return config{}, err
	}
	c, err := parseConfig(data)
	if err != nil {
		return c, fmt.Errorf("%s: %w", e.configFile(), err)
	}
	return e.within(c), nil
}

// environ returns the environment for commands of agents: all without the API keys that config.toml names.
func (c config) environ(all []string) []string {
	keys := []string{c.KeyEnv}
	for _, m := range c.Models {
		keys = append(keys, m.KeyEnv)
	}
	return slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(keys, name)
	})
}

// listed returns the configured models, the default first. There is at least one.
func (c config) listed() []modelConfig {
	if len(c.Models) == 0 {
		return []modelConfig{{}}
	}
	return c.Models
}

// keys reads the API keys of all models from the environment.
func (c config) keys(getenv func(string) string) *provider.Keys {
	var names []string
	if c.Script == "" {
		for _, m := range c.listed() {
			names = append(names, c.keyOf(m))
		}
	}
	return provider.NewKeys(getenv, names...)
}

// source returns the models that sessions can use. noKey returns the advice for a missing key.
func (c config) source(keys *provider.Keys, noKey func(name string) string) (engine.ModelSource, error) {
	if c.Script != "" {
		return c.scripted()
	}
	set := providers.Config{
		Keys: providers.KeyRing{Keys: keys}, Policy: provider.Policy{DownFor: c.ServerDown.Duration}, Providers: map[string]providers.Provider{},
		NoKey: func(_ string, variables []string) string { return noKey(strings.Join(variables, " or ")) },
	}
	for _, m := range c.listed() {
		set.Models = append(set.Models, c.model(m, set.Providers))
	}
	return providers.New(set), nil
}

// scripted returns the configured models with replies from a script.
func (c config) scripted() (engine.ModelSource, error) {
	s, err := scripted.Load(c.Script)
	if err != nil {
		return nil, err
	}
	var models engine.FixedModels
	for _, m := range c.listed() {
		made := c.model(m, map[string]providers.Provider{})
		spec := made.Spec
		spec.Provider, spec.ID = "scripted", made.ID
		name := made.Name
		if c.Models == nil {
			name, spec.ID = "scripted", "scripted"
		}
		models = append(models, engine.Model{Name: name, Spec: spec, Provider: scripted.New(s), Price: made.Price})
	}
	return models, nil
}

// idOf returns the id of a model on its server.
func (c config) idOf(m modelConfig) string { return cmp.Or(m.ID, c.Model, "gpt-5") }

// ofOpenAI is the server that always needs a key. Local servers usually need none.
const ofOpenAI = "https://api.openai.com"

// keyOf returns the name of the environment variable with the API key of a model.
func (c config) keyOf(m modelConfig) string { return cmp.Or(m.KeyEnv, c.KeyEnv, "OPENAI_API_KEY") }

// model returns a configured model and adds the server that it names to known.
func (c config) model(m modelConfig, known map[string]providers.Provider) providers.Model {
	if m.ID == "" {
		m.Price = cmp.Or(m.Price, c.Price)
	}
	base := cmp.Or(m.BaseURL, c.BaseURL, os.Getenv("OPENAI_BASE_URL"), ofOpenAI+"/v1")
	keyEnv := c.keyOf(m)
	server := endpoint.Shown(base)
	if other, ok := known[server]; ok && other.Env[0] != keyEnv {
		server += " with " + keyEnv
	}
	known[server] = providers.Provider{
		API: providers.Chat, BaseURL: base, Env: []string{keyEnv}, NeedKey: strings.HasPrefix(base, ofOpenAI+"/"),
	}
	return providers.Model{
		Name: cmp.Or(m.Name, c.idOf(m)), Provider: server, ID: c.idOf(m), Price: m.Price.price(),
		Spec: protocol.ModelSpec{ContextWindow: m.ContextWindow, OutputLimit: m.OutputLimit},
	}
}
