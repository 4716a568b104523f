package config

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/proc"
	"lashd/engine/provider"
	"lashd/engine/undo"
	"lashd/rpc/protocol"
)

func TestConfigOfPrograms(t *testing.T) {
	for text, want := range map[string]proc.Limits{
		"": {OpenFiles: 4096, Processes: 4096, FileSize: 16 << 30},
		"[plugin_limits]\nmemory_mib = 100\nprocesses = 0\nopen_files = 50\nfile_mib = 2\n": {Memory: 100 << 20, OpenFiles: 50, FileSize: 2 << 20},
	} {
		t.Run("issue/4-7 reliability/T9 limits of "+text, func(t *testing.T) {
			c, err := Parse([]byte(text))
			if got := c.PluginLimits.Limits(); err != nil || got != want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	for text, want := range map[string]string{
		"plugin_sandbox = \"maybe\"": "it must be off, on or required", "[plugin_limits]\nopen_files = 3": "from 16 to", "[plugin_limits]\nmemory_mib = -1": "from 16 to",
		"[plugin_limits]\nopenfiles = 3": "open_files",
	} {
		t.Run("issue/4-7 "+text+" is rejected", func(t *testing.T) {
			if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestConfigOfServerHosts(t *testing.T) {
	t.Run("part11/network hosts of an MCP server are read, and wrong ones are rejected", func(t *testing.T) {
		c, err := Parse([]byte("[mcp.docs]\nhosts = [\"registry.npmjs.org\", \"*.example.com:8080\"]"))
		if got := c.ServerSandboxes()["docs"].String(); err != nil || got != "[hosts registry.npmjs.org *.example.com:8080]" {
			t.Errorf("%s, %v", got, err)
		}
		_, err = Parse([]byte("[mcp.docs]\nhosts = [\"https://example.com\"]"))
		if err == nil || !strings.HasPrefix(err.Error(), "line 2: ") || !strings.HasSuffix(err.Error(), "must be a host without https://, such as example.com, *.example.com or example.com:8080") {
			t.Errorf("%v", err)
		}
	})
}

func TestConfigOfResidency(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, `park_after = "90s"`: 90 * time.Second, `park_after = "2h"`: 2 * time.Hour} {
		t.Run("runtime/S16 sessions are unloaded after "+text, func(t *testing.T) {
			if c, err := Parse([]byte(text)); err != nil || c.ParkAfter.Duration != want {
				t.Errorf("%v, %v", c.ParkAfter.Duration, err)
			}
		})
	}
	for _, text := range []string{`park_after = "0s"`, `park_after = "soon"`, `park_after = "-1m"`, `park_after = "10000h"`, `park_after = 10`} {
		t.Run("runtime/S16 "+text+" is rejected with the valid values", func(t *testing.T) {
			if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "such as 10m") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestConfigOfUndo(t *testing.T) {
	for text, want := range map[string]undo.Limits{
		"":                   {},
		"[undo]\noff = true": {Off: true},
		"[undo]\nbudget_mib = 2\nfile_kib = 3\nfiles = 4\n": {Budget: 2 << 20, FileSize: 3 << 10, Files: 4},
	} {
		t.Run("issue/6-2 copies of files as "+text, func(t *testing.T) {
			if c, err := Parse([]byte(text)); err != nil || c.Undo.Limits() != want {
				t.Errorf("%+v, %v", c.Undo.Limits(), err)
			}
		})
	}
	for text, want := range map[string]string{"[undo]\nbudget_mib = -1": "from 1 to", "[undo]\nfile_kib = 100000": "from 1 to", "[undo]\nbudget = 1": "budget_mib"} {
		t.Run("issue/6-2 "+text+" is rejected", func(t *testing.T) {
			if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestConfigProblemsHaveTheirLines(t *testing.T) {
	for text, want := range map[string][]int{
		"# nothing\n\nplugin_sandbox = 'maybe'\n":                          {3},
		"trace = true\n\n[ plugin_limits ]\nprocesses = 1\nopen_files = 3": {5},
		"undo.files = -1\nundo.file_kib = -1\n":                            {1, 2},
		"trace = true\nundo = {off = true, files = -1}\n":                  {2},
		"[[models]]\nid = 'a'\nprice = {input = 1, output = 1}\n[[models]]\nid = 'b'\nprice = {input = -1, output = 1}\n[[models]]\n[models.price]\ninput = 1": {6, 8},
		"[[models]]\nid = 'a'\n[[models]]\nidd = 'b'\n[undo]\nof = true\n":                                                                                     {4, 6},
	} {
		t.Run("issue/6-1 of "+text, func(t *testing.T) {
			_, problems := readConfig([]byte(text))
			var lines []int
			for _, p := range problems {
				lines = append(lines, p.Line)
			}
			if !slices.Equal(lines, want) {
				t.Errorf("%v, want lines %v", problems, want)
			}
		})
	}
}

func TestInvalidConfigIsRejected(t *testing.T) {
	for text, want := range map[string][]string{
		"approval = true":                           {"line 1: approval is a boolean; it must be allow, ask or deny"},
		"trace = 'yes'\nmodel = 5\nmodle = 1":       {"line 1: trace is a string; it must be true or false", "line 2: model is an integer; it must be a string"},
		"replace = ['a', 1]":                        {"line 1: replace is an array; it must be an array of strings"},
		"undo = 3":                                  {"line 1: undo is an integer; it must be a table"},
		"undo.files = 1.5":                          {"line 1: undo.files is a float; it must be an integer"},
		"price = {input = 'x', output = 1}":         {"line 1: price.input is a string; it must be a number"},
		"park_after = 1979-05-27":                   {"line 1: park_after is a date or a time; it must be a string such as 10m"},
		"[models.x]\nid = 'x'":                      {"line 1: models is a table; it must be one or more [[models]] tables"},
		"[plugins]\nx = 1":                          nil,
		"model = ''":                                {"line 1: model is empty; remove it to use the default"},
		"[[models]]\nid = 'a'\n[[models]]\nid = ''": {"line 4: models.id is empty"},
		"[[models]]\nid = 'a'\n[[models]]\nname = 'a'\nid = 'b'":                              {`line 4: models.name "a" is used twice`},
		"model = 'a'\n[[models]]\nid = 'a'\n[[models]]\nbase_url = 'http://x'":                {`line 4: models.name "a"`},
		"[[models]]\nid = 'a'\nbase_url = 'http://x'\n[[models]]\nid = 'a'\nname = 'b'":       nil,
		"[[models]]\ncontext_window = -5\noutput_limit = -7":                                  {"line 2: models.context_window is -5; it must be from 1 to", "line 3: models.output_limit is -7"},
		"[[models]]\ncontext_window = 100\noutput_limit = 5000":                               {"line 3: models.output_limit is 5000; it must not exceed models.context_window (100)"},
		"[[models]]\ncontext_window = 100\noutput_limit = 100":                                nil,
		"base_url = 'localhost:11434/v1'":                                                     {"line 1: base_url must begin with http:// or https://"},
		"[[models]]\nbase_url = 'http://'":                                                    {"line 2: models.base_url must begin with"},
		"key_env = 'sk-proj-abc'":                                                             {"line 1: key_env must be the name of an environment variable"},
		"[[models]]\nkey_env = 'MY KEY'":                                                      {"line 2: models.key_env must be the name"},
		"base_url = 'https://x/v1?y=1'\nkey_env = 'MY_KEY_2'\n[[models]]\ncontext_window = 0": nil,
	} {
		t.Run("issue/2 "+text, func(t *testing.T) {
			_, problems := readConfig([]byte(text))
			if len(problems) != len(want) {
				t.Fatalf("%v, want %q", problems, want)
			}
			for i, p := range problems {
				if !strings.Contains(p.Error(), want[i]) || strings.Contains(p.Error(), "sk-") {
					t.Errorf("%q, want %q", p.Error(), want[i])
				}
			}
		})
	}
}

func TestOpenAINeedsAKey(t *testing.T) {
	t.Setenv("MY_KEY", "")
	t.Run("issue/2 a server is not called without its key", func(t *testing.T) {
		c, err := Parse([]byte("base_url = 'https://api.openai.com/v1'\nkey_env = 'MY_KEY'"))
		if err != nil {
			t.Fatal(err)
		}
		source, err := c.Source(KeySources{Memory: c.keys(os.Getenv)}, NotSet)
		if err != nil {
			t.Fatal(err)
		}
		models := source.Models()
		for _, failed := range models[0].Provider.Stream(t.Context(), &provider.Request{Model: models[0].Spec}) {
			err = failed
		}
		if err == nil || !strings.Contains(err.Error(), "MY_KEY is not set") {
			t.Errorf("%v", err)
		}
	})
}

func TestConfigOfPrices(t *testing.T) {
	full := protocol.Price{Input: 1.25, Output: 10, Cached: 0.125}
	for text, want := range map[string]*protocol.Price{
		"": nil,
		"price = {input = 1.25, output = 10.0, cached = 0.125}":                                       &full,
		"price = {input = 2.0, output = 4.0}":                                                         {Input: 2, Output: 4, Cached: 2},
		"[[models]]\nid = \"a\"\nprice = {input = 1.25, output = 10.0, cached = 0.125}":               &full,
		"price = {input = 2.0, output = 4.0}\n[[models]]\nid = \"another\"":                           nil,
		"model = \"a\"\nprice = {input = 2.0, output = 4.0, cached = 0}\n[[models]]\nname = \"fast\"": {Input: 2, Output: 4},
	} {
		t.Run("issue/6-1 the price of tokens with "+text, func(t *testing.T) {
			if !strings.HasPrefix(text, "model") {
				text = "model = 'm'\n" + text
			}
			c, err := Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			source, err := c.Source(KeySources{Memory: c.keys(os.Getenv)}, NotSet)
			if err != nil {
				t.Fatal(err)
			}
			models := source.Models()
			if (models[0].Price == nil) != (want == nil) || want != nil && *models[0].Price != *want {
				t.Errorf("%+v, %v", models, err)
			}
		})
	}
	for text, want := range map[string]string{
		"price = {input = 1.0}":                                       "price.output is missing",
		"price = {input = -1.0, output = 1.0}":                        "is -1; it must be from 0 to 10000",
		"price = {input = nan, output = 1.0}":                         "is NaN; it must be from 0 to 10000",
		"[price]\ninput = 1\noutput = 1\ncahced = 1":                  "did you mean cached?",
		"[[models]]\nprice = {input = 1, output = 10001}":             "line 2: models.price.output is 10001",
		"[[models]]\n[models.price]\ninput = 1\noutput = 1\nout = 10": "did you mean output?",
	} {
		t.Run("issue/6-1 "+text+" is rejected", func(t *testing.T) {
			if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}
