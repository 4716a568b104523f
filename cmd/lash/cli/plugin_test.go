package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
)

func TestPluginCheck(t *testing.T) {
	p := newPlace(t)
	good, bad := filepath.Join(p.work, "good"), filepath.Join(p.work, "bad")
	for dir, text := range map[string]string{
		good: `{"name":"reviewer","skills":"x","lashd":{"process":{"command":["python3","${PLUGIN_ROOT}/r.py"]},"hooks":["beforeToolCall"],
			"tools":[{"name":"tests","description":"d","command":["go","test"]}],"mcpServers":{"web":{"url":"https://x.test"}},
			"prompt":[{"slot":"intro","content":"Be\nshort"}],"capabilities":["graph"],"codeExecutor":{},"toolSwitches":{"off":["shell"]}}}`,
		bad: "{\"name\":\"p\",\n\t\"lashd\":{\"hoks\":1}, \"version\":2}",
	} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := p.want(0, "", "", "plugin", "check", good)
	want := `plugin.json:1:20: warning: "x" is not a file or directory of the plugin; it is left out
CONTRIBUTES   NAME                         DETAIL
plugin        reviewer
process       python3 ${PLUGIN_ROOT}/r.py
hook          beforeToolCall               if it fails: deny
tool          tests                        go test
server        web                          https://x.test
prompt        intro                        Be short
toolSwitches                               on: off: shell
codeExecutor
may request   graph
`
	if r.out != want {
		t.Errorf("got\n%s\nwant\n%s", r.out, want)
	}
	r = p.want(console.ExitFailed, "", "", "plugin", "check", bad)
	if want := "plugin.json:2:11: unknown field \"hoks\", did you mean \"hooks\"?\nplugin.json:2:32: expected string, got number\n"; r.out != want {
		t.Errorf("got\n%s\nwant\n%s", r.out, want)
	}
	r = p.want(console.ExitFailed, "", "", "plugin", "check", "--json", bad)
	var v struct {
		OK       bool
		Problems []struct {
			File         string
			Line, Column int
			Message      string
		}
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.OK || len(v.Problems) != 2 || v.Problems[1].Column != 32 || v.Problems[1].Line != 2 {
		t.Errorf("%v: %s", err, r.out)
	}
	if err := os.WriteFile(filepath.Join(good, "plugin.json"), []byte(`{"name":"p","lashd":{"process":{"command":["no-such-program"]}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	missing := `plugin.json: warning: the program "no-such-program" is not in PATH; the plugin cannot be loaded without it`
	p.want(0, missing, "", "plugin", "check", good)
	p.want(console.ExitFailed, "", "no such file or directory", "plugin", "check", filepath.Join(p.work, "none"))
	if r := p.want(0, "", "", "schema", "plugin"); !strings.Contains(r.out, `"title": "plugin.json"`) {
		t.Errorf("the schema is %.200s", r.out)
	}
}

func TestPluginCheckOfALayout(t *testing.T) {
	t.Run("part13/5 plugin check names once what lashd does not support in a workspace", func(t *testing.T) {
		p := newPlace(t)
		dir := filepath.Join(p.work, "project")
		for name, text := range map[string]string{
			".claude/settings.json":      `{"model":"opus","permissions":{"allow":["Bash"],"deny":["Bash(git push:*)"]},"hooks":{"Notification":[{"hooks":[{"type":"command","command":"x"}]}]}}`,
			".claude/skills/a/SKILL.md":  "---\nallowed-tools: Read\n---\nA",
			".claude/skills/b/SKILL.md":  "---\nallowed-tools: Read\n---\nB",
			".claude/agents/reviewer.md": "---\ndescription: Review\npermissionMode: plan\n---\nR",
		} {
			at := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want := `.claude/settings.json:1:87: warning: lashd does not run hooks of the event "Notification"
.claude/settings.json: warning: these have no effect in lashd: "model", "permissions.allow"
.claude/skills/a/SKILL.md: warning: "allowed-tools" has no effect (also in 1 more): lashd decides about each call by its own rules and mode
.claude/agents/reviewer.md: warning: "permissionMode" has no effect: it has the approval settings of the session that starts it
`
		if r := p.want(0, "", "", "plugin", "check", dir); !strings.HasPrefix(r.out, want) {
			t.Errorf("got\n%s\nwant\n%s", r.out, want)
		}
	})
}
