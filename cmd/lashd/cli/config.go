package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"lashd/engine"
	"lashd/engine/provider"
	"lashd/engine/provider/openai"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// config is config.toml of the data directory. All of it is optional.
type config struct {
	Model    string        `toml:"model" comment:"name of the default model"`
	BaseURL  string        `toml:"base_url" comment:"of an OpenAI-compatible server"`
	KeyEnv   string        `toml:"key_env" comment:"environment variable that holds the key"`
	Script   string        `toml:"script" comment:"transcript to play instead of a model"`
	Approval string        `toml:"approval" comment:"allow, ask or deny for calls that no rule matches"`
	Trace    bool          `toml:"trace" comment:"write trace.jsonl"`
	Models   []modelConfig `toml:"models"`
}

type modelConfig struct {
	Name          string `toml:"name"`
	ID            string `toml:"id"`
	BaseURL       string `toml:"base_url"`
	KeyEnv        string `toml:"key_env"`
	ContextWindow int64  `toml:"context_window"`
	OutputLimit   int64  `toml:"output_limit"`
}

func (e *environment) config() (config, error) {
	var c config
	path := filepath.Join(e.home, "config.toml")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if c.Script != "" && !filepath.IsAbs(c.Script) {
		c.Script = filepath.Join(e.home, c.Script)
	}
	return c, nil
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
	or := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	base := or(m.BaseURL, c.BaseURL, os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1")
	id := or(m.ID, c.Model, "gpt-5")
	adapter := openai.New(openai.Config{
		Name: base, BaseURL: base, Key: provider.NewSecret(os.Getenv(or(m.KeyEnv, c.KeyEnv, "OPENAI_API_KEY"))),
	})
	return engine.Model{
		Name:     or(m.Name, id),
		Spec:     protocol.ModelSpec{Provider: base, ID: id, ContextWindow: m.ContextWindow, OutputLimit: m.OutputLimit},
		Provider: &provider.Retry{Provider: adapter},
	}
}
