package manifest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/pluginloader/manifest"
)

// files are what a directory holds, by path.
type files map[string]string

// root writes files into a directory and opens it.
func (f files) root(t *testing.T) *os.Root {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "unnamed")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range f {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// formatter is a plugin as other agents have it.
var formatter = files{
	".claude-plugin/plugin.json": `{"name": "formatter", "version": "2.0.0", "author": {"name": "A"}, "keywords": ["x"],
  "commands": ["./c.md"], "hooks": ["./more/hooks.json"], "mcpServers": {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/db", "args": ["--at", "${DB_URL:-none}"], "env": {"TOKEN": "${TOKEN}"}}}}`,
	"hooks/hooks.json": `{"description": "d", "hooks": {
  "PreToolUse": [{"matcher": "Write|Edit", "hooks": [
    {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/check.sh \"$HOME\"", "timeout": 1.5},
    {"type": "prompt", "prompt": "is it safe?"}]}],
  "Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "node", "args": ["${CLAUDE_PLUGIN_ROOT}/stop.js", "${USER}"], "async": true}]}],
  "Notification": [{"hooks": [{"type": "command", "command": "bell"}]}]
}}`,
	"more/hooks.json":    `{"hooks": {"PostToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "fmt", "onError": "fail"}]}]}}`,
	".mcp.json":          `{"web": {"type": "streamable-http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}, "old": {"type": "sse", "url": "https://x"}}`,
	"output-styles/b.md": "x",
}

func TestPluginsOfOtherAgentsLoadUnchanged(t *testing.T) {
	p, err := manifest.Load(formatter.root(t))
	if err != nil {
		t.Fatal(err)
	}
	hooks := []manifest.CommandHook{
		{Event: "PostToolUse", Slot: "afterToolCall", Command: "fmt", OnError: "fail", File: "more/hooks.json", Line: 1},
		{Event: "PreToolUse", Slot: "beforeToolCall", Matcher: "Write|Edit", Command: `${CLAUDE_PLUGIN_ROOT}/check.sh "$HOME"`, TimeoutMs: 1500, OnError: "deny", File: "hooks/hooks.json", Line: 3},
		{Event: "Stop", Slot: "checkpoint", Command: "node", Args: []string{"${PLUGIN_ROOT}/stop.js", "${USER}"}, PassEnv: []string{"USER"}, OnError: "allow", File: "hooks/hooks.json", Line: 5},
	}
	servers := map[string]manifest.Server{
		"db":  {Type: "stdio", Command: "${PLUGIN_ROOT}/db", Args: []string{"--at", "${DB_URL:-none}"}, Env: map[string]string{"TOKEN": "${TOKEN}"}, PassEnv: []string{"DB_URL", "TOKEN"}},
		"web": {Type: "http", URL: "https://${HOST}/mcp", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}, PassEnv: []string{"HOST", "TOKEN"}},
	}
	warnings := []string{
		`.claude-plugin/plugin.json:2:3: warning: "./c.md" is not a file or directory of the plugin; it is left out`,
		`hooks/hooks.json:4:6: warning: lashd does not run hooks of the type "prompt"; calls that it would refuse are not refused`,
		`hooks/hooks.json:5:13: warning: the matcher has no effect on Stop`,
		`hooks/hooks.json:5:132: warning: "async" is for other agents and has no effect in lashd`,
		`hooks/hooks.json:6:3: warning: lashd does not run hooks of the event "Notification"`,
		`.mcp.json:1:125: warning: lashd does not support servers of the type "sse"`,
		`output-styles: warning: is for other agents and has no effect in lashd`,
	}
	for _, d := range []string{cmp.Diff("formatter 2.0.0", p.Name+" "+p.Version), cmp.Diff(hooks, p.CommandHooks), cmp.Diff(servers, p.MCPServers),
		cmp.Diff(strings.Join(warnings, "\n"), p.Warnings.Error())} {
		if d != "" {
			t.Error(d)
		}
	}
}

func TestNamesInFilesOfOtherAgents(t *testing.T) {
	const one = `{"name":"p"}`
	for name, c := range map[string]struct {
		in   files
		want string
	}{
		"peers/R9 a name that no agent uses is a mistake": {files{"plugin.json": one, "hooks/hooks.json": `{"hooks":{"PreTooluse":[],"Sleep":[]}}`},
			"hooks/hooks.json:1:11: unknown event \"PreTooluse\"; did you mean \"PreToolUse\"?\nhooks/hooks.json:1:27: unknown event \"Sleep\"; docs/other-agents.md lists the events"},
		"peers/R9 so are kinds of hooks and their fields": {files{"plugin.json": one, "hooks/hooks.json": `{"hooks":{"Stop":[{"hooks":[{"type":"comand"},{"type":"command"},{"type":"command","command":"x","timeOut":1},{"type":"command","command":"x","onError":"deny"}]}]}}`},
			"hooks/hooks.json:1:98: unknown field \"timeOut\", did you mean \"timeout\"?"},
		"peers/R9 all mistakes in hooks are reported": {files{"plugin.json": one, "hooks/hooks.json": `{"hooks":{"Stop":[{"hooks":[{"type":"comand"},{"type":"command"},{"type":"command","command":"x","timeout":-1},{"type":"command","command":"x","onError":"deny"}]}],"PreToolUse":[{"matcher":"(?!x)","hooks":[]}]}}`},
			"hooks/hooks.json:1:37: unknown value \"comand\"; did you mean \"command\"?\nhooks/hooks.json:1:47: a hook of the type \"command\" needs a \"command\"\nhooks/hooks.json:1:108: the timeout must be between 0 and 3600 seconds\nhooks/hooks.json:1:154: a hook of Stop cannot deny anything; use allow or fail\nhooks/hooks.json:1:190: error parsing regexp: invalid or unsupported Perl syntax: `(?!`; expressions use RE2 syntax, without lookaround"},
		"peers/R9 so are types of servers": {files{"plugin.json": one, ".mcp.json": `{"mcpServers":{"a":{"type":"htp","url":"https://x"},"b":{"command":"./b"},"c":{"type":"http","command":"c"}}}`},
			".mcp.json:1:28: unknown value \"htp\"; did you mean \"http\"?\n.mcp.json:1:68: the path of the program must be absolute; for a file of the plugin, write ${PLUGIN_ROOT}/b\n.mcp.json:1:87: a server of the type \"http\" needs a \"url\""},
		"mistakes of all files are reported": {files{"plugin.json": "{\n}", "hooks/hooks.json": `[]`, ".mcp.json": `{"a":{}`},
			"plugin.json:1:1: \"name\" is missing\nhooks/hooks.json:1:1: expected object, got array\n.mcp.json:1:8: unexpected end of JSON"},
		"a server has one definition": {files{"plugin.json": `{"name":"p","lashd":{"mcpServers":{"a":{"command":"a"}}}}`, ".mcp.json": `{"a":{"command":"b"}}`},
			`.mcp.json: another file of the plugin also defines the server "a"`},
		"a path stays inside": {files{"plugin.json": `{"name":"p","hooks":["../h.json",5,"./none.json"],"mcpServers":7}`},
			"plugin.json:1:22: \"../h.json\" must be a relative path without ..\nplugin.json:1:34: must be the path of a file\nplugin.json:1:36: cannot open \"none.json\": statat none.json: no such file or directory\nplugin.json:1:64: \"mcpServers\" must be a path, a list of paths, or an object"},
		"hooks in a manifest have their place": {files{"plugin.json": "{\"name\":\"p\",\"_é\":\"é\", \"hooks\":{\"Stap\":[],\n\"Stop\":5}}"},
			"plugin.json:2:8: expected array, got number"},
		"events in a manifest have their place": {files{"plugin.json": "{\"name\":\"p\",\"_é\":\"é\", \"hooks\":{\"Stap\":[]}}"},
			"plugin.json:1:32: unknown event \"Stap\"; did you mean \"Stop\"?"},
		"a directory without anything is no plugin": {files{"a": "b"},
			"plugin.json: missing; a plugin has this file or .claude-plugin/plugin.json, .codex-plugin/plugin.json, hooks/hooks.json, .mcp.json, skills, commands or agents"},
		"a directory with servers is one": {files{".mcp.json": `{}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := manifest.Load(c.in.root(t))
			if err == nil && c.want == "" {
				if p.Name != "unnamed" {
					t.Errorf("it is called %q", p.Name)
				}
				return
			}
			if got := fmt.Sprint(err); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestAHookBeforeACallDeniesIfItFails(t *testing.T) {
	root := files{"plugin.json": `{"name":"p","lashd":{"process":{"command":["a"]},"hooks":["beforeToolCall","afterTurn",{"on":"event","onError":"allow"}]}}`}.root(t)
	p, err := manifest.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []manifest.Hook{{On: "beforeToolCall", OnError: "deny"}, {On: "afterTurn", OnError: "fail"}, {On: "event", OnError: "allow"}}
	if d := cmp.Diff(want, p.Hooks); d != "" {
		t.Error(d)
	}
}

func TestSubstitute(t *testing.T) {
	get := func(name string) (string, bool) { return "<" + name + ">", name == "A" || name == "LOOP" }
	for in, want := range map[string]string{
		"${PLUGIN_ROOT}/x": "/root/x", "a${PLUGIN_DATA}b${PLUGIN_ROOT}": "a${A}b/root", "${A}${B}${B:-c}": "<A>c", "${A": "${A", "$A ${1}": "$A ${1}",
	} {
		if got := manifest.Substitute(in, "/root", "${A}", get); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
}
