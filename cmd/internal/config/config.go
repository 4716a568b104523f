package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lashd/engine/proc"
	"lashd/engine/undo"
	durations "lashd/internal/duration"
	"lashd/pluginloader"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// Config is config.toml of the data directory. All keys are optional. The daemon reads the file when it starts.
type Config struct {
	Model        string                    `toml:"model"`                 // default model: PROVIDER/ID or the name of one of models; with base_url, the model id on that server
	BaseURL      string                    `toml:"base_url" is:"url"`     // URL of an OpenAI-compatible server, with /v1; default $OPENAI_BASE_URL or OpenAI
	KeyEnv       string                    `toml:"key_env" is:"variable"` // name of the environment variable with the API key; default OPENAI_API_KEY
	Script       string                    `toml:"script"`                // script file that replaces the model, for tests
	Approval     protocol.ApprovalMode     `toml:"approval"`              // decision for tool calls that no rule covers: ask, allow or deny; by default, read-only calls are allowed and others ask
	DenyURLs     bool                      `toml:"deny_attachment_urls"`  // refuse images and documents by URL, which the model's server would fetch; files are still accepted
	Trace        bool                      `toml:"trace"`                 // write all model calls to trace.jsonl in the data directory
	ParkAfter    duration                  `toml:"park_after"`            // time after which an unused session is unloaded from memory, such as 90s, 10m or 2h; it is reloaded on next use
	Providers    map[string]providerConfig `toml:"providers"`             // providers by name; the name of a preset, such as anthropic or openai, changes that preset
	Models       []ModelConfig             `toml:"models"`                // models that sessions can use; the first is the default unless model names another one
	Plugins      map[string]any            `toml:"plugins"`               // options of plugins by plugin name; each plugin defines its own options
	Sandbox      protocol.SandboxMode      `toml:"sandbox"`               // what commands of new sessions reach: readOnly or workspace, in a sandbox and without questions, or fullAccess; default: workspace where the system has a sandbox, else fullAccess
	SandboxEnv   []string                  `toml:"sandbox_env"`           // names of environment variables that commands in a sandbox get although they look like secrets
	Rules        []ruleConfig              `toml:"rules"`                 // approval rules for all workspaces; the daemon reads them again when they change
	PluginBoxes  pluginloader.SandboxMode  `toml:"plugin_sandbox"`        // sandbox for plugins that request one: on (default), off, or required to refuse plugins that cannot be sandboxed
	MCP          map[string]serverConfig   `toml:"mcp"`                   // settings of MCP servers by name: their sandboxes, and use of models; not for the servers of a workspace
	Replace      []string                  `toml:"replace"`               // built-in plugins to replace with your plugin of the same name
	PluginLimits limitsConfig              `toml:"plugin_limits"`         // default limits for plugin programs
	Driver       string                    `toml:"driver"`                // how new sessions drive the model: standard, which calls tools natively, or rlm, which writes code cells
	Code         codeConfig                `toml:"code"`                  // limits of code cells
	Undo         undoConfig                `toml:"undo"`                  // limits of the file copies for undo
	Price        *priceConfig              `toml:"price"`                 // price of the model that the key model names
	ServerDown   duration                  `toml:"server_down_for"`       // time to retry a model server that refuses connections before the turn fails, such as 10m; default 3s
}

// duration is a duration in config.toml, such as "90s", "10m" or "2h".
type duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts durations from one second to a year.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := durations.Parse(string(text))
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

// serverConfig changes the sandbox of an MCP server that lashd starts, and says whether the server may use models.
type serverConfig struct {
	Sandbox manifest.ServerMode `toml:"sandbox"`         // fullAccess to run it outside of a sandbox; readOnly if it must not change the workspace; by default it reaches what the commands of the session reach
	Network bool                `toml:"network"`         // let it use the network of the machine
	Hosts   []string            `toml:"hosts" is:"host"` // hosts that it reaches by HTTP and HTTPS, such as registry.npmjs.org, *.example.com or example.com:8080
	Write   []string            `toml:"write" is:"path"` // absolute paths of more files and directories that it may read and write

	Sampling  bool  `toml:"sampling"`                                  // offer it the model of the session; lashd asks about each request unless a rule decides
	MaxTokens int64 `toml:"sampling_max_tokens" from:"1" to:"1000000"` // tokens of the answer to one of its requests; 0 for 4096
	PerTurn   int64 `toml:"sampling_per_turn" from:"1" to:"10000"`     // requests in one turn; 0 for 10
}

// undoConfig has the limits of the file copies for undo. 0 means the default of the engine.
type undoConfig struct {
	Off       bool  `toml:"off"`                              // keep no copies; file changes cannot be undone
	BudgetMiB int64 `toml:"budget_mib" from:"1" to:"1048576"` // total size of all copies in MiB; 0 for the default
	FileKiB   int64 `toml:"file_kib" from:"1" to:"65536"`     // largest file to copy, in KiB; 0 for the default
	Files     int64 `toml:"files" from:"1" to:"1000000"`      // files to track per workspace; 0 for the default
}

// Limits converts the settings to bytes.
func (c undoConfig) Limits() undo.Limits {
	return undo.Limits{Off: c.Off, Budget: c.BudgetMiB << 20, FileSize: c.FileKiB << 10, Files: int(c.Files)}
}

// Limits converts the settings to bytes and fills in defaults.
func (c limitsConfig) Limits() proc.Limits {
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

// priceConfig is the price of a model in US dollars per million tokens.
type priceConfig struct {
	Input   *float64 `toml:"input" to:"10000" required:"true"`  // input tokens
	Output  *float64 `toml:"output" to:"10000" required:"true"` // output tokens
	Cached  *float64 `toml:"cached" to:"10000"`                 // input tokens read from a cache; default the price of input
	Written *float64 `toml:"written" to:"10000"`                // input tokens written to a cache; default the price of input
}

// price converts p; nil stays nil.
func (p *priceConfig) price() *protocol.Price {
	if p == nil {
		return nil
	}
	price := &protocol.Price{Input: *p.Input, Output: *p.Output, Cached: *cmp.Or(p.Cached, p.Input)}
	if p.Written != nil {
		price.Written = *p.Written
	}
	return price
}

// File returns the path of config.toml, which need not exist.
func File(home string) string { return filepath.Join(home, "config.toml") }

// Load reads config.toml of a data directory. A missing file has no settings. If drivers are given, the default driver must be one of them.
func Load(home string, drivers ...string) (Config, error) {
	data, err := os.ReadFile(File(home))
	if errors.Is(err, os.ErrNotExist) {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(data)
	if bad := badDriver(data, c, drivers); err == nil && len(bad) > 0 {
		err = &bad[0]
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", File(home), err)
	}
	return within(home, c), nil
}

// Problems returns the problems of a config.toml and of the script that it
// may name.
func Problems(home string, data []byte, drivers ...string) []Problem {
	c, problems := readConfig(data)
	if problems = append(problems, badDriver(data, c, drivers)...); len(problems) > 0 {
		return problems
	}
	if _, err := within(home, c).Source(OpenKeySources(home, c, ""), NotSet); err != nil {
		return []Problem{{Line: lineOf(data, []string{"script"}, 0), Message: err.Error()}}
	}
	return nil
}

// within resolves relative paths of a config.toml against the data directory, so
// that they do not depend on where the daemon was started.
func within(home string, c Config) Config {
	if c.Script != "" && !filepath.IsAbs(c.Script) {
		c.Script = filepath.Join(home, c.Script)
	}
	return c
}
