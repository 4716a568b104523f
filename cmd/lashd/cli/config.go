package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"lashd/engine"
	"lashd/engine/proc"
	"lashd/engine/provider"
	"lashd/engine/provider/openai"
	"lashd/engine/provider/scripted"
	"lashd/pluginloader"
	"lashd/rpc/protocol"
)

// config is config.toml of the data directory. All of it is optional; the README explains each key.
type config struct {
	Model        string                   `toml:"model"`
	BaseURL      string                   `toml:"base_url"`
	KeyEnv       string                   `toml:"key_env"`
	Script       string                   `toml:"script"`
	Approval     protocol.ApprovalMode    `toml:"approval"`
	Trace        bool                     `toml:"trace"`
	ParkAfter    duration                 `toml:"park_after"` // how long a session that nobody uses stays in memory; 0: as the engine has it
	Models       []modelConfig            `toml:"models"`
	Plugins      map[string]any           `toml:"plugins"` // options for all sessions, by plugin
	Sandbox      pluginloader.SandboxMode `toml:"sandbox"`
	Replace      []string                 `toml:"replace"` // built-in plugins whose place plugins of the user's take
	PluginLimits limitsConfig             `toml:"plugin_limits"`
	Undo         undoConfig               `toml:"undo"`
}

// duration is a time as people write it: 90s, 10m, 2h.
type duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < time.Second || v > 365*24*time.Hour {
		return fmt.Errorf("%q must be a time from 1s to 8760h, such as 10m", text)
	}
	d.Duration = v
	return nil
}

// limitsConfig bounds programs of plugins that say nothing of it. What is absent is as lashd has it, and 0 is no bound.
type limitsConfig struct {
	MemoryMiB *int64 `toml:"memory_mib"`
	Processes *int64 `toml:"processes"`
	OpenFiles *int64 `toml:"open_files"`
	FileMiB   *int64 `toml:"file_mib"`
}

// undoConfig bounds the copies that lashd makes of files, to undo what turns do to them. What is 0 is as the engine has it.
type undoConfig struct {
	Off       bool  `toml:"off"`
	BudgetMiB int64 `toml:"budget_mib"`
	FileKiB   int64 `toml:"file_kib"`
	Files     int   `toml:"files"`
}

func (c undoConfig) limits() engine.FileLimits {
	return engine.FileLimits{Off: c.Off, Budget: c.BudgetMiB << 20, FileSize: c.FileKiB << 10, Files: c.Files}
}

func (c undoConfig) check() error {
	for _, l := range []struct {
		key  string
		said int64
		most int64
	}{{"budget_mib", c.BudgetMiB, 1 << 20}, {"file_kib", c.FileKiB, 64 << 10}, {"files", int64(c.Files), 1_000_000}} {
		if l.said < 0 || l.said > l.most {
			return fmt.Errorf("undo.%s is %d; it must be from 1 to %d, or 0 for what lashd thinks best", l.key, l.said, l.most)
		}
	}
	return nil
}

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

// check refuses what would let nothing start.
func (c limitsConfig) check() error {
	for _, l := range []struct {
		key         string
		said        *int64
		least, most int64
	}{{"memory_mib", c.MemoryMiB, 16, 65536}, {"processes", c.Processes, 1, 1 << 20}, {"open_files", c.OpenFiles, 16, 1 << 20}, {"file_mib", c.FileMiB, 1, 1 << 20}} {
		if l.said != nil && *l.said != 0 && (*l.said < l.least || *l.said > l.most) {
			return fmt.Errorf("plugin_limits.%s is %d; it must be 0 for no limit, or from %d to %d", l.key, *l.said, l.least, l.most)
		}
	}
	return nil
}

type modelConfig struct {
	Name          string `toml:"name"`
	ID            string `toml:"id"`
	BaseURL       string `toml:"base_url"`
	KeyEnv        string `toml:"key_env"`
	ContextWindow int64  `toml:"context_window"`
	OutputLimit   int64  `toml:"output_limit"`
}

func (e *environment) configFile() string { return filepath.Join(e.home, "config.toml") }

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
	if c.Script != "" && !filepath.IsAbs(c.Script) {
		c.Script = filepath.Join(e.home, c.Script)
	}
	return c, nil
}

// parseConfig refuses keys that it does not know: a setting that is spelled wrong would silently not hold.
func parseConfig(data []byte) (config, error) {
	var c config
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&c)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		first := unknown.Errors[0]
		line, _ := first.Position()
		return c, unknownKey(line, first.Key())
	}
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := wrong.Position()
		return c, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	if err != nil {
		return c, err
	}
	switch c.Sandbox {
	case "", pluginloader.SandboxOff, pluginloader.SandboxOn, pluginloader.SandboxRequired:
	default:
		return c, fmt.Errorf("sandbox is %q; it must be off, on or required", c.Sandbox)
	}
	if err := cmp.Or(c.PluginLimits.check(), c.Undo.check()); err != nil {
		return c, err
	}
	switch c.Approval {
	case "", protocol.ApproveAllow, protocol.ApproveAsk, protocol.ApproveDeny:
		return c, nil
	}
	return c, fmt.Errorf("approval is %q; it must be allow, ask or deny", c.Approval)
}

func unknownKey(line int, key toml.Key) error {
	table := reflect.TypeFor[config]()
	if len(key) > 1 {
		table = reflect.TypeFor[modelConfig]()
	}
	switch key[0] {
	case "plugin_limits":
		table = reflect.TypeFor[limitsConfig]()
	case "undo":
		table = reflect.TypeFor[undoConfig]()
	}
	known := map[string]bool{}
	for field := range table.Fields() {
		known[field.Tag.Get("toml")] = true
	}
	keys := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	return fmt.Errorf("line %d: unknown key %q%s (known are %s)", line, strings.Join(key, "."), didYouMean(key[len(key)-1], known), keys)
}

// environ is what commands may see of the environment: not the keys, whatever their variables are called.
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

// models are what sessions can use, the default first.
func (c config) models() ([]engine.Model, error) {
	if c.Script != "" {
		s, err := scripted.Load(c.Script)
		if err != nil {
			return nil, err
		}
		return []engine.Model{{Name: "scripted", Spec: protocol.ModelSpec{Provider: "scripted", ID: "scripted"}, Provider: scripted.New(s)}}, nil
	}
	list := c.Models
	if len(list) == 0 {
		list = []modelConfig{{}}
	}
	var models []engine.Model
	for _, m := range list {
		models = append(models, c.model(m))
	}
	return models, nil
}

func (c config) model(m modelConfig) engine.Model {
	base := cmp.Or(m.BaseURL, c.BaseURL, os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1")
	id := cmp.Or(m.ID, c.Model, "gpt-5")
	adapter := openai.New(openai.Config{
		Name: base, BaseURL: base, Key: provider.NewSecret(os.Getenv(cmp.Or(m.KeyEnv, c.KeyEnv, "OPENAI_API_KEY"))),
	})
	return engine.Model{
		Name:     cmp.Or(m.Name, id),
		Spec:     protocol.ModelSpec{Provider: base, ID: id, ContextWindow: m.ContextWindow, OutputLimit: m.OutputLimit},
		Provider: &provider.Retry{Provider: adapter},
	}
}
