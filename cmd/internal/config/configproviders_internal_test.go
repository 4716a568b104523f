package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func TestConfigOfProvidersIsChecked(t *testing.T) {
	for text, want := range map[string][]string{
		"[providers.anthropic]\nkey = {env = 'MY_KEY'}":                                   nil,
		"[providers.mine]\napi = 'anthropic'\nbase_url = 'http://h'\nheaders = {A = 'b'}": nil,
		"[providers.mine]\napi = 'claude'\nbase_url = 'http://h'":                         {`line 2: providers.mine.api is "claude"; it must be chat, responses, anthropic or gemini`},
		"[providers.mine]\napi = 'chat'":                                                  {"line 1: providers.mine.base_url is missing; it has the form https://HOST/v1"},
		"[providers.azure]\nkey = {env = 'X'}":                                            {"line 1: providers.azure.base_url is missing; it has the form https://RESOURCE.openai.azure.com/openai/v1"},
		"[[models]]\nid = 'x'\nprovider = 'bedrock'":                                      {"line 3: models.provider needs providers.bedrock.base_url; it has the form https://bedrock-runtime.REGION"},
		"model = 'vertex/x'":                                                              {"line 1: model needs providers.vertex.base_url; it has the form https://LOCATION-aiplatform"},
		"[providers.mine]\nbase_url = 'h'":                                                {"line 2: providers.mine.base_url must begin with http"},
		"[providers.openai]\nkey = {}":                                                    {"line 2: providers.openai.key must have exactly one of env, file, command and keyring"},
		"[providers.openai]\nkey = {env = 'X', file = 'y'}":                               {"line 2: providers.openai.key must have exactly one"},
		"[providers.openai]\nkey = 'sk-abc'":                                              {"line 2: providers.openai.key is a string; it must be a table"},
		"[providers.openai.key]\nenv = 'sk-abc-def'":                                      {"line 2: providers.openai.key.env must be the name of an environment variable"},
		"[providers.openai.key]\nfile = ''":                                               {"line 2: providers.openai.key.file is empty"},
		"[providers.openai]\nkey_header = 'X Key'":                                        {"line 2: providers.openai.key_header must be the name of an HTTP header"},
		"[providers.openai]\nheaders = {a = 1}":                                           {"line 2: providers.openai.headers is a table; it must be a table of strings"},
		"[providers.openai]\nbaseurl = 'http://h'":                                        {`line 2: unknown key "providers.openai.baseurl"; did you mean base_url?`},
		"[providers.openai.key]\nenvv = 'A'":                                              {"line 1: providers.openai.key must have exactly one", `unknown key "providers.openai.key.envv"; did you mean env?`},
		"[providers.openai.limits]\nconcurrency = 4\nwindow = '1h'":                       nil,
		"[providers.openai.limits]\nrequests = -1":                                        {"line 2: providers.openai.limits.requests is -1; it must be"},
		"[providers.openai.limits]\ncalls = 1":                                            {`line 2: unknown key "providers.openai.limits.calls"`},
		"providers = 3":                                                                   {"line 1: providers is an integer; it must be a table"},
		"providers.openai = 3":                                                            {"line 1: providers.openai is an integer; it must be a table"},
		"[providers.'a/b']\nbase_url = 'http://h'":                                        {`line 1: "a/b" cannot be the name of a provider`},
	} {
		t.Run("runtime/M08 "+text, func(t *testing.T) { checkProblems(t, text, want) })
	}
}

func TestConfigOfModelsIsChecked(t *testing.T) {
	for text, want := range map[string][]string{
		"[[models]]\nid = 'x'\nprovider = 'antropic'":                     {`line 3: models.provider "antropic" is unknown; did you mean anthropic?`},
		"[[models]]\nid = 'x'\nprovider = 'openai'\nkey_env = 'A'":        {"line 3: models.provider excludes base_url, key_env and api"},
		"[[models]]\nprovider = 'openai'":                                 {"line 1: models.id is missing"},
		"model = 'openai/x'\n[[models]]\nname = 'y'":                      {"line 2: models.id is missing"},
		"[[models]]\nid = 'x'\napi = 'anthropic'\nbase_url = 'http://h'":  nil,
		"[[models]]\nid = 'x'\ninputs = ['image', 'sound']":               {`line 3: models.inputs contains "sound"; each must be text, image or pdf`},
		"[[models]]\nid = 'x'\ncache = 'forever'":                         {"line 3: models.cache is"},
		"[[models]]\nid = 'x'\neffort = 'high'":                           {`line 3: models.effort is "high"; it must be one of models.efforts (not set)`},
		"[[models]]\nid = 'x'\nefforts = ['low', 'high']\neffort = 'max'": {`line 4: models.effort is "max"; it must be one of models.efforts (low, high)`},
		"[[models]]\nid = 'x'\nreasoning_encoding = 'budget'":             {"line 3: models.reasoning_encoding needs models.efforts"},
		"[[models]]\nid = 'x'\nfallback = 'y'":                            {`line 3: models.fallback "y" is unknown`},
		"[[models]]\nid = 'x'\nfallback = 'x'":                            {"line 3: models.fallback must name another model"},
		"[[models]]\nid = 'x'\nfallback = 'openai/y'":                     nil,
		"[[models]]\nprice = {input = 1, output = 2, written = -1}":       {"line 2: models.price.written is -1"},
	} {
		t.Run("runtime/M08 "+text, func(t *testing.T) { checkProblems(t, text, want) })
	}
}

// checkProblems compares the problems of a config.toml with the wanted parts of their messages, which must not quote a key.
func checkProblems(t *testing.T, text string, want []string) {
	_, problems := readConfig([]byte(text))
	if len(problems) != len(want) {
		t.Fatalf("%v, want %q", problems, want)
	}
	for i, p := range problems {
		if !strings.Contains(p.Error(), want[i]) || strings.Contains(p.Error(), "sk-") {
			t.Errorf("%q, want %q", p.Error(), want[i])
		}
	}
}

func TestConfiguredModels(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	for text, want := range map[string][]string{
		"model = 'anthropic/some-model'":                            {"anthropic/some-model"},
		"model = 'qwen3'\nbase_url = 'http://h/v1'":                 {"qwen3"},
		"model = 'anthropic/claude'\nbase_url = 'http://h/v1'":      {"anthropic/claude"},
		"[[models]]\nid = 'a'\n[[models]]\nid = 'b'":                {"a", "b"},
		"model = 'b'\n[[models]]\nid = 'a'\n[[models]]\nid = 'b'":   {"b", "a"},
		"model = 'mine/m'\n[providers.mine]\nbase_url = 'http://h'": {"mine/m"},
		"[[models]]\nid = 'm'\nprovider = 'google'":                 {"google/m"},
		"model = 'openai/x'\n[[models]]\nid = 'a'\nname = 'first'":  {"openai/x", "first"},
	} {
		t.Run("runtime/M08 the default comes first of "+text, func(t *testing.T) {
			var names []string
			for _, m := range modelsOf(t, text) {
				names = append(names, m.Name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("%q, want %q", names, want)
			}
		})
	}
	t.Run("runtime/M08 a model has what its configuration says", func(t *testing.T) {
		got := modelsOf(t, `[[models]]
id = "m"
provider = "mine"
context_window = 1000
output_limit = 100
inputs = ["image", "pdf"]
effort = "high"
efforts = ["low", "high"]
default_effort = "low"
reasoning_encoding = "budget"
cache = "long"
idempotent = true
price = {input = 3, output = 15, cached = 0.3, written = 3.75}
[providers.mine]
base_url = "http://h"
`)[0]
		want := protocol.ModelSpec{
			Provider: "mine", ID: "m", ContextWindow: 1000, OutputLimit: 100, Inputs: []protocol.Modality{"image", "pdf"}, Effort: "high",
			Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low", "high"}, Default: "low", Encoding: "budget"}, Cache: "long", Idempotent: true,
		}
		if !reflect.DeepEqual(got.Model, want) || *got.Price != (protocol.Price{Input: 3, Output: 15, Cached: 0.3, Written: 3.75}) {
			t.Errorf("%+v, price %+v", got.Model, got.Price)
		}
	})
	t.Run("runtime/M08 two APIs at one address are two providers", func(t *testing.T) {
		models := modelsOf(t, "base_url = 'http://h'\n[[models]]\nid = 'a'\n[[models]]\nid = 'b'\napi = 'anthropic'\n")
		if a, b := models[0].Model.Provider, models[1].Model.Provider; a != "http://h" || b != "http://h (anthropic)" {
			t.Errorf("%q, %q", a, b)
		}
	})
}

// modelsOf returns the name, spec and price of the models of a config.toml, without keys.
func modelsOf(t *testing.T, text string) []protocol.ModelInfo {
	t.Helper()
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	source, err := c.Source(KeySources{Memory: &provider.Keys{}}, NotSet)
	if err != nil {
		t.Fatal(err)
	}
	var infos []protocol.ModelInfo
	for _, m := range source.Models() {
		infos = append(infos, protocol.ModelInfo{Name: m.Name, Model: m.Spec, Price: m.Price})
	}
	return infos
}

func TestKeysAreRemovedFromTheEnvironment(t *testing.T) {
	t.Run("issue/18 commands do not get the keys of presets and configuration", func(t *testing.T) {
		c, err := Parse([]byte("key_env = 'TOP'\n[[models]]\nid = 'a'\nkey_env = 'OWN'\n[providers.openai.key]\nenv = 'OTHER'\n"))
		if err != nil {
			t.Fatal(err)
		}
		left := c.Environ([]string{
			"PATH=/bin", "TOP=1", "OWN=1", "OTHER=1", "OPENAI_API_KEY=1", "ANTHROPIC_API_KEY=1", "GEMINI_API_KEY=1",
			"GOOGLE_API_KEY=1", "OPENROUTER_API_KEY=1", "AZURE_OPENAI_API_KEY=1", "AWS_BEARER_TOKEN_BEDROCK=1", "OPENAI_BASE_URL=x",
		})
		if !slices.Equal(left, []string{"PATH=/bin", "OPENAI_BASE_URL=x"}) {
			t.Errorf("%q", left)
		}
	})
}

func TestConfiguredFallback(t *testing.T) {
	t.Run("runtime/M08 a model has the fallback of its configuration", func(t *testing.T) {
		c, err := Parse([]byte("[[models]]\nid = 'a'\nfallback = 'openai/b'\n"))
		if err != nil {
			t.Fatal(err)
		}
		if made := c.model(c.Models[0], c.Servers(KeySources{})); made.Fallback != "openai/b" {
			t.Errorf("%+v", made)
		}
	})
}
