package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
)

// layoutOf reads files as the layout of a workspace.
func layoutOf(t *testing.T, f files) (*manifest.Plugin, error) {
	t.Helper()
	return manifest.LoadLayout(f.root(t), layout.ProjectName)
}

func TestSettingsOfALayout(t *testing.T) {
	t.Run("part13/5 permissions become rules that ask or deny", func(t *testing.T) {
		p, err := layoutOf(t, files{".claude/settings.json": `{"permissions":{
			"allow": ["Bash(npm test)"], "defaultMode": "acceptEdits",
			"deny": ["Bash", "Bash(git push:*)", "Bash(rm *)", "Bash(curl https://*)", "Read(./.env)", "Read(.env)", "Read(~/.ssh/**)", "Read(//etc/passwd)", "Edit(/src/**)", "WebFetch(domain:a.example)", "WebFetch"],
			"ask": ["mcp__db", "mcp__db__query", "mcp__db__*", "Read", "Unknown"]}, "model": "opus"}`})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range p.Rules {
			got = append(got, r.String())
		}
		want := []string{
			"deny tool shell", "deny tool start_command", "deny tool start_monitor", "deny tool write_stdin", "deny tool read_output", "deny tool stop_command",
			"deny command git push", "deny command rm", "deny command curl https://", "deny path .env", "deny path **/.env", "deny path ~/.ssh/**", "deny path /etc/passwd",
			"deny tool write path src/**", "deny tool edit path src/**", "deny tool patch path src/**", "deny host a.example",
			"ask tool mcp__db__*", "ask tool mcp__db__query", "ask tool mcp__db__*", "ask tool read", "ask tool Unknown",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(strings.Join([]string{
			`.claude/settings.json: warning: the permission "WebFetch" is about no tool of lashd`,
			`.claude/settings.json: warning: these have no effect in lashd: "model", "permissions.allow", "permissions.defaultMode"`,
		}, "\n"), p.Warnings.Error()); d != "" {
			t.Error(d)
		}
	})
	t.Run("part13/5 both settings files and the servers count, except those that are switched off", func(t *testing.T) {
		p, err := layoutOf(t, files{
			".claude/settings.json":       `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"one"}]}]}}`,
			".claude/settings.local.json": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"two"}]}]},"disabledMcpjsonServers":["b"]}`,
			".mcp.json":                   `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}`,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.CommandHooks) != 2 || p.CommandHooks[1].Command != "two" || len(p.MCPServers) != 1 || p.MCPServers["a"].Command != "x" {
			t.Errorf("%+v, %+v", p.CommandHooks, p.MCPServers)
		}
	})
	t.Run("part13/5 a permission whose rule covers more has a warning", func(t *testing.T) {
		p, err := layoutOf(t, files{".claude/settings.json": `{"permissions":{"deny":["Agent(Explore)","Bash(git * --force)","Bash(* --force)"],` +
			`"ask":["Bash(git push:*)","Bash(rm *)","Bash(ls)","Bash(*)","Bash","Read(./.env)","Edit(*.go)","Skill(*)"]}}`})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, w := range p.Warnings {
			all = append(all, w.Message)
		}
		want := `the permission "Agent(Explore)" covers all calls of the rule tool spawn_agent, the permission "Bash(git * --force)" covers all calls of the rule command git, ` +
			`the permission "Bash(* --force)" covers all calls of the rule tool shell`
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("the warnings are %s", got)
		}
	})
	t.Run("part13/5 a matcher without any tool of lashd has a warning", func(t *testing.T) {
		group := `{"matcher":"NAME","hooks":[{"type":"command","command":"one"}]}`
		var groups []string
		for _, name := range []string{"WebFetch|WebSearch", "NotebookEdit|Edit", "Task", "mcp__x__y", "^Web"} {
			groups = append(groups, strings.Replace(group, "NAME", name, 1))
		}
		p, err := layoutOf(t, files{".claude/settings.json": `{"hooks":{"PreToolUse":[` + strings.Join(groups, ",") + `]}}`})
		if err != nil || len(p.CommandHooks) != 5 || len(p.Warnings) != 1 ||
			p.Warnings[0].Message != `lashd has no tool for "WebFetch|WebSearch", so it does not call these hooks` {
			t.Errorf("%v, %+v", err, p.Warnings)
		}
	})
	t.Run("part13/5 an event of settings that lashd does not know leaves the rest of the file in force", func(t *testing.T) {
		p, err := layoutOf(t, files{".claude/settings.json": `{"permissions":{"deny":["Read(.env)"]},"hooks":{"BeforeLunch":[{"hooks":[{"type":"command","command":"one"}]}],"MessageDisplay":[],` +
			`"Stop":[{"hooks":[{"type":"command","command":"two"}]}]}}`})
		if err != nil || len(p.Rules) != 1 || len(p.CommandHooks) != 1 || p.CommandHooks[0].Command != "two" {
			t.Fatalf("%v, %+v", err, p)
		}
		var all []string
		for _, w := range p.Warnings {
			all = append(all, w.Message)
		}
		want := `lashd does not know the event "BeforeLunch" and does not run its hooks, lashd does not run hooks of the event "MessageDisplay"`
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("the warnings are %s", got)
		}
	})
	t.Run("part13/5 what lashd does not know of a hook in settings leaves the rest of the file in force, and the hook runs more often", func(t *testing.T) {
		p, err := layoutOf(t, files{".claude/settings.json": `{"permissions":{"deny":["Read(.env)"]},"hooks":{"PreToolUse":[
			{"matcher":"(?!x)","IF":"x","hooks":[{"type":"command","command":"one","If":"Bash(ls)","a\"b":1,"timeout":9999},{"type":"oracle","question":"?"},{"type":"http","url":"x"}]}]}}`})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Rules) != 1 || len(p.CommandHooks) != 1 || p.CommandHooks[0].Command != "one" || p.CommandHooks[0].If != nil || p.CommandHooks[0].Matcher != "" || p.CommandHooks[0].TimeoutMs != 0 {
			t.Errorf("%+v", p)
		}
		if d := cmp.Diff(strings.Join([]string{
			".claude/settings.json:2:5: warning: error parsing regexp: invalid or unsupported Perl syntax: `(?!`; expressions use RE2 syntax, without lookaround. The hooks always run",
			`.claude/settings.json:2:23: warning: unknown field "IF"; it has no effect in lashd`,
			`.claude/settings.json:2:75: warning: unknown field "If", did you mean "if"?; it has no effect in lashd`,
			`.claude/settings.json:2:91: warning: unknown field "a\"b"; it has no effect in lashd`,
			`.claude/settings.json:2:100: warning: the timeout is not between 0 and 3600 seconds, so lashd uses its own`,
			`.claude/settings.json:2:117: warning: lashd does not run hooks of the type "oracle"; calls that it would refuse are not refused`,
			`.claude/settings.json:2:133: warning: unknown field "question"; it has no effect in lashd`,
			`.claude/settings.json:2:150: warning: lashd does not run hooks of the type "http"; calls that it would refuse are not refused`,
		}, "\n"), p.Warnings.Error()); d != "" {
			t.Error(d)
		}
	})
	t.Run("part13/5 a mistake in settings is reported with its place, and settings can switch all hooks off", func(t *testing.T) {
		_, err := layoutOf(t, files{".claude/settings.json": "{\n\"hooks\":{\"Stap\":[]}}"})
		if err == nil || !strings.Contains(err.Error(), `.claude/settings.json:2:10: unknown event "Stap"`) {
			t.Errorf("the error is %v", err)
		}
		if _, err := layoutOf(t, files{".claude/settings.json": `{`}); err == nil || !strings.Contains(err.Error(), "is not valid") {
			t.Errorf("the error is %v", err)
		}
		p, err := layoutOf(t, files{".claude/settings.json": `{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"one"}]}]}}`})
		if err != nil || len(p.CommandHooks) > 0 {
			t.Errorf("%v, %+v", err, p)
		}
	})
}

func TestOnlyTheLayoutOfADirectoryCounts(t *testing.T) {
	t.Run("part13/5 the digest covers the layout and nothing else, and a copy has the same", func(t *testing.T) {
		f := files{".claude/skills/a/SKILL.md": "A", ".claude/skills/a/run.sh": "x", ".mcp.json": "{}", "code.go": "y", ".claude/projects/x.jsonl": "z"}
		digest := func(root *os.Root, only layout.Selection) string {
			t.Helper()
			d, err := manifest.DigestOnly(t.Context(), root, manifest.Beyond{}, only)
			if err != nil {
				t.Fatal(err)
			}
			return string(d)
		}
		before := digest(f.root(t), layout.Project())
		f["code.go"], f["more"], f[".claude/projects/x.jsonl"] = "changed", "new", "changed"
		root := f.root(t)
		if err := os.Symlink("/etc", filepath.Join(root.Name(), ".claude", "agents")); err != nil {
			t.Fatal(err)
		}
		if digest(root, layout.Project()) != before {
			t.Error("files outside of the layout count")
		}
		delete(f, "code.go")
		delete(f, "more")
		delete(f, ".claude/projects/x.jsonl")
		if digest(f.root(t), nil) != before {
			t.Error("a directory with only the layout has another digest")
		}
		f[".claude/skills/a/run.sh"] = "other"
		if digest(f.root(t), layout.Project()) == before {
			t.Error("a changed script does not count")
		}
	})
}
