//go:build unix

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/monitor"
	"lashd/engine/builtin/plan"
	"lashd/engine/builtin/shell"
	"lashd/engine/builtin/subagents"
	"lashd/engine/builtin/workspace"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/pluginloader/child"
	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/skills"
	"lashd/rpc/protocol"
)

func TestMatcher(t *testing.T) {
	t.Run("issue/4-2 plain words match whole names, everything else is an expression", func(t *testing.T) {
		for _, c := range []struct {
			matcher, name string
			want          bool
		}{
			{"", "anything", true}, {"*", "anything", true}, {"Edit", "Edit", true}, {"Edit", "MultiEdit", false}, {"Edit", "edit", false},
			{"Edit|Write", "Write", true}, {"Edit | Write", "Write", true}, {"Edit,Write", "Write", true}, {"Edit|Write", "Writer", false},
			{"mcp__memory__.*", "mcp__memory__store", true}, {"mcp__memory", "mcp__memory__store", false}, {"mcp__.*__write.*", "mcp__fs__write_file", true},
			{"Notebook.*", "NotebookEdit", true}, {".*Edit", "MultiEdit", true}, {"^Bash$", "Bash", true}, {"^Bash$", "BashOutput", false}, {"Bash|Web.*", "WebFetch", true},
		} {
			m, err := newMatcher(c.matcher)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.fits(c.name); got != c.want {
				t.Errorf("%q fits %q: %v", c.matcher, c.name, got)
			}
		}
	})
}

func TestWords(t *testing.T) {
	const patch = "*** Begin Patch\\n*** Add File: new.txt\\n+one\\n+two\\n*** Update File: /w/old.txt\\n@@ head\\n same\\n-gone\\n+come\\n*** Delete File: dead.txt\\n*** End Patch"
	for _, c := range []struct {
		matcher, tool, args string
		want                []string // as the hook is asked
		updated, back       string   // what it makes of the first, and what that is in lashd's words; "": it cannot be changed
	}{
		{"", "shell", `{"command":"ls","timeoutMs":5,"workdir":"sub"}`, []string{`Bash {"command":"ls","timeout":5,"workdir":"sub"}`},
			`{"command":"ls -l","timeout":5,"workdir":"sub","description":"list"}`, `{"command":"ls -l","timeoutMs":5,"workdir":"sub"}`},
		{"Bash", "shell", `{"command":"a && b <c >d"}`, []string{`Bash {"command":"a && b <c >d"}`}, `{"command":"x"}`, `{"command":"x"}`},
		{"shell", "shell", `{"command":"ls"}`, []string{`shell {"command":"ls"}`}, `{"command":"x"}`, `{"command":"x"}`},
		{"run_shell_command", "shell", `{"command":"ls","workdir":"a"}`, []string{`run_shell_command {"command":"ls","dir_path":"a"}`}, `{"command":"x"}`, `{"command":"x"}`},
		{"Bash", "start_command", `{"command":"make","timeoutMs":5,"label":"all"}`, []string{`Bash {"command":"make","description":"all","timeout":5}`},
			`{"command":"make x","timeout":5,"description":"all","run_in_background":true}`, `{"command":"make x","label":"all","timeoutMs":5}`},
		{"run_shell_command", "start_command", `{"command":"make","workdir":"a"}`, []string{`run_shell_command {"command":"make","dir_path":"a"}`}, `{"command":"x"}`, `{"command":"x"}`},
		{"", "start_monitor", `{"id":"log","command":"tail"}`, []string{`Bash {"command":"tail","id":"log"}`}, `{"command":"x","id":"log"}`, `{"command":"x","id":"log"}`},
		{"run_shell_command", "start_monitor", `{"id":"log","command":"tail","cwd":"a"}`, []string{`run_shell_command {"command":"tail","dir_path":"a","id":"log"}`}, `{"command":"x"}`, `{"command":"x"}`},
		{"Read", "read", `{"path":"a/b","offset":2}`, []string{`Read {"file_path":"/w/a/b","offset":2}`}, `{"file_path":"/w/a/b","offset":1}`, `{"offset":1,"path":"a/b"}`},
		{"read_file", "read", `{"path":"/w/a"}`, []string{`read_file {"file_path":"/w/a"}`}, `{"file_path":"/w/c"}`, `{"path":"/w/c"}`},
		{"Write", "write", `{"path":"a","content":""}`, []string{`Write {"content":"","file_path":"/w/a"}`}, `{"content":"x","file_path":"/w/a"}`, `{"content":"x","path":"a"}`},
		{"write_file", "write", `{"path":"a","content":"c"}`, []string{`write_file {"content":"c","file_path":"/w/a"}`}, `{"content":"c","file_path":"/w/a"}`, `{"content":"c","path":"a"}`},
		{"apply_patch", "write", `{"path":"a","content":"b\nc"}`, []string{`apply_patch {"command":"*** Begin Patch\n*** Add File: a\n+b\n+c\n*** End Patch"}`}, "", ""},
		{"Edit|Write", "edit", `{"path":"a","old":"x","new":"y","replaceAll":true}`, []string{`Edit {"file_path":"/w/a","new_string":"y","old_string":"x","replace_all":true}`},
			`{"file_path":"/w/a","new_string":"z","old_string":"x"}`, `{"new":"z","old":"x","path":"a"}`},
		{"MultiEdit", "edit", `{"path":"a","old":"x","new":"y"}`, []string{`MultiEdit {"file_path":"/w/a","edits":[{"old_string":"x","new_string":"y"}]}`}, "", ""},
		{"replace", "edit", `{"path":"a","old":"x","new":"y"}`, []string{`replace {"file_path":"/w/a","new_string":"y","old_string":"x"}`}, `{"file_path":"b","new_string":"y","old_string":"x"}`, `{"new":"y","old":"x","path":"b"}`},
		{"apply_patch", "edit", `{"path":"a","old":"x\ny","new":"z"}`, []string{`apply_patch {"command":"*** Begin Patch\n*** Update File: a\n@@\n-x\n-y\n+z\n*** End Patch"}`}, "", ""},
		{"Edit|Write", "patch", `{"patch":"` + patch + `"}`, []string{`Write {"file_path":"/w/new.txt","content":"one\ntwo\n"}`,
			`Edit {"file_path":"/w/old.txt","old_string":"gone\n","new_string":"come\n"}`, `Edit {"file_path":"/w/dead.txt","old_string":"","new_string":""}`}, "", ""},
		{"Write", "patch", `{"patch":"` + patch + `"}`, []string{`Write {"file_path":"/w/new.txt","content":"one\ntwo\n"}`}, "", ""},
		{"MultiEdit", "patch", `{"patch":"` + patch + `"}`, []string{`MultiEdit {"file_path":"/w/old.txt","edits":[{"old_string":"gone\n","new_string":"come\n"}]}`,
			`MultiEdit {"file_path":"/w/dead.txt","edits":[{"old_string":"","new_string":""}]}`}, "", ""},
		{"apply_patch", "patch", `{"patch":"p"}`, []string{`apply_patch {"command":"p"}`}, `{"command":"q"}`, `{"patch":"q"}`},
		{"", "patch", `{"patch":"no patch"}`, []string{`patch {"patch":"no patch"}`}, `{"patch":"q"}`, `{"patch":"q"}`},
		{"LS", "list", `{"path":"a"}`, []string{`LS {"path":"/w/a"}`}, `{"path":"/w/b"}`, `{"path":"/w/b"}`},
		{"list_directory", "list", `{}`, []string{`list_directory {}`}, `{"dir_path":"b"}`, `{"path":"b"}`},
		{"Glob", "glob", `{"pattern":"*.go","path":"a"}`, []string{`Glob {"path":"/w/a","pattern":"*.go"}`}, `{"path":"/w/a","pattern":"*"}`, `{"path":"a","pattern":"*"}`},
		{"Grep", "grep", `{"pattern":"x","include":"*.go","ignoreCase":true,"limit":3}`, []string{`Grep {"-i":true,"glob":"*.go","head_limit":3,"pattern":"x"}`},
			`{"-i":false,"glob":"*.go","head_limit":3,"pattern":"x","output_mode":"content"}`, `{"ignoreCase":false,"include":"*.go","limit":3,"pattern":"x"}`},
		{"search_file_content|grep_search", "grep", `{"pattern":"x","path":"a"}`, []string{`search_file_content {"dir_path":"/w/a","pattern":"x"}`}, `{"pattern":"y"}`, `{"pattern":"y"}`},
		{"grep_search", "grep", `{"pattern":"x"}`, []string{`grep_search {"pattern":"x"}`}, `{"pattern":"y"}`, `{"pattern":"y"}`},
		{"TodoWrite", "update_plan", `{"steps":[{"text":"a","status":"inProgress"}]}`, []string{`TodoWrite {"todos":[{"content":"a","status":"in_progress","activeForm":"a"}]}`},
			`{"todos":[{"content":"b","status":"completed"}]}`, `{"steps":[{"text":"b","status":"completed"}]}`},
		{"Task", "spawn_agent", `{"task":"look","type":"reviewer"}`, []string{`Task {"prompt":"look","subagent_type":"reviewer"}`},
			`{"prompt":"look","subagent_type":"explorer","description":"d","model":"opus"}`, `{"task":"look","type":"explorer"}`},
		{"", "spawn_agent", `{"task":"look"}`, []string{`Agent {"prompt":"look"}`}, `{"prompt":"x"}`, `{"task":"x"}`},
		{"Skill", "skill", `{"name":"pdf"}`, []string{`Skill {"skill":"pdf"}`}, `{"skill":"doc","args":"a"}`, `{"name":"doc"}`},
		{"mcp__srv__.*", "mcp__srv__do", `{"x":1}`, []string{`mcp__srv__do {"x":1}`}, `{"x":2}`, `{"x":2}`},
		{"Bash", "read", `{"path":"a"}`, nil, "", ""},
		{"Bash", "shell", `"no object"`, nil, "", ""},
	} {
		t.Run("issue/4-2 "+c.tool+" as "+c.matcher, func(t *testing.T) {
			m, err := newMatcher(c.matcher)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			heard := m.matching(call{c.tool, json.RawMessage(c.args), "/w"}.formats())
			for _, w := range heard {
				got = append(got, w.tool+" "+string(w.input))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the hook is asked about\n%q, want\n%q", got, c.want)
			}
			if len(heard) == 0 {
				return
			}
			if changeable := heard[0].back != nil; changeable != (c.updated != "") {
				t.Fatalf("the call can be changed: %v", changeable)
			} else if !changeable {
				return
			}
			if back, err := heard[0].back(json.RawMessage(c.updated)); err != nil || string(back) != c.back {
				t.Errorf("changed it is %s, %v; want %s", back, err, c.back)
			}
		})
	}
}

// schemas are those of lashd's own tools.
func schemas(t *testing.T) map[string]string {
	t.Helper()
	h, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{&workspace.Factory{}, shell.New(shell.Config{}), monitor.Factory{}, plan.Factory{},
		subagents.Factory{}, skills.New([]skills.Source{{Plugin: "p", Skills: []*layout.Prompt{{Kind: layout.Skill, Name: "s"}}, Agents: []*layout.Agent{{Name: "a"}}}})})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: "ses_1", Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := map[string]string{}
	for _, source := range s.Sources() {
		for _, tool := range source.Provider.Tools() {
			all[tool.Manifest.Name] = string(tool.Manifest.Input)
		}
	}
	return all
}

func TestForeignTools(t *testing.T) {
	t.Run("issue/4-2 another agent's tool name stands for lashd's tool with its arguments", func(t *testing.T) {
		all := schemas(t)
		for _, f := range toolMappings {
			schema, ok := all[f.own]
			if !ok {
				t.Errorf("there is no tool %q", f.own)
			}
			for _, x := range f.fields {
				if !strings.Contains(schema, `"`+x.own+`":`) {
					t.Errorf("%s has no argument %q", f.own, x.own)
				}
			}
		}
	})
	t.Run("issue/4-2 the docs contain the table of tools", func(t *testing.T) {
		text, err := os.ReadFile("../../docs/other-agents.md")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), toolTable()) {
			t.Errorf("docs/other-agents.md lacks this table:\n%s", toolTable())
		}
	})
}

// toolTable returns the table of tools in docs/other-agents.md.
func toolTable() string {
	var b bytes.Buffer
	b.WriteString("| Tool | Name | Agent | Differences in `tool_input` |\n|---|---|---|---|\n")
	for _, f := range toolMappings {
		var told []string
		if f.about != "" {
			told = []string{f.about}
		}
		for _, x := range f.fields {
			if x.own != x.theirs {
				told = append(told, fmt.Sprintf("`%s` is `%s`", x.own, x.theirs))
			}
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", f.own, f.tool, f.agent, strings.Join(told, ", "))
	}
	return b.String()
}

// before asks hooks before a call of the shell.
func before(t *testing.T, p *Part, args string) string {
	t.Helper()
	v, err := opened(t, p).BeforeToolCall(t.Context(), &plugin.ToolCallContext{TurnID: "t", CallID: "c", Tool: "shell", Args: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return ofCall(v)
}

// saying are hooks before a call, each a line for sh.
func saying(t *testing.T, lines ...string) *Part {
	t.Helper()
	c := config(t)
	for i, line := range lines {
		c.Hooks = append(c.Hooks, manifest.CommandHook{Event: "PreToolUse", Slot: manifest.SlotBeforeToolCall, Command: line, OnError: manifest.OnErrorDeny, File: "hooks.json", Line: i + 1})
	}
	return part(t, c)
}

// decides is a line that decides.
func decides(decision, more string) string {
	return `printf '{"hookSpecificOutput":{"permissionDecision":"` + decision + `","permissionDecisionReason":"` + decision + ` me"` + more + `}}'`
}

func TestSeveralHooks(t *testing.T) {
	allow, ask, deny, halt := decides("allow", ""), decides("ask", ""), decides("deny", ""), `printf '{"continue":false,"stopReason":"halt me"}'`
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"allow is as nothing", []string{allow, "true"}, ""},
		{"ask is stronger than allow", []string{allow, ask}, "asks: ask me"},
		{"deny is stronger than ask", []string{ask, deny, allow}, "hook_denied: deny me"},
		{"the end of the turn is stronger than deny", []string{deny, halt, ask}, "hook_halted: halt me"},
		{"of equals the first counts", []string{decides("deny", ""), `printf '{"decision":"block","reason":"other"}'`}, "hook_denied: deny me"},
		{"a failure that denies is as strong as a denial, and no stronger", []string{"exit 1", halt}, "hook_halted: halt me"},
		{"new arguments", []string{decides("allow", `,"updatedInput":{"command":"other"}`), "true"}, `args {"command":"other"}`},
		{"the same arguments are none", []string{decides("allow", `,"updatedInput":{"command":"ls"}`)}, ""},
		{"the same new arguments twice", []string{decides("allow", `,"updatedInput":{"command":"other"}`), `echo;` + decides("allow", `,"updatedInput":{"command": "other"}`)}, `args {"command":"other"}`},
		{"two new arguments are a conflict", []string{decides("allow", `,"updatedInput":{"command":"a"}`), decides("allow", `,"updatedInput":{"command":"b"}`)},
			"hook_denied: the hooks hooks.json:1 and hooks.json:2 both change the arguments of the call"},
		{"new arguments are shown to the others, who may refuse", []string{`grep -q other && { echo seen >&2; exit 2; }; exit 0`, decides("allow", `,"updatedInput":{"command":"other"}`)}, "hook_denied: seen"},
		{"or have a person asked", []string{`grep -q other && ` + ask + `; exit 0`, decides("allow", `,"updatedInput":{"command":"other"}`)}, `asks: ask me; args {"command":"other"}`},
		{"but not change them again", []string{`grep -q other && ` + decides("allow", `,"updatedInput":{"command":"third"}`) + `; exit 0`, decides("allow", `,"updatedInput":{"command":"other"}`)},
			"hook_denied: the hook hooks.json:1 changes arguments that the hook hooks.json:2 has just changed"},
		{"new arguments are no object", []string{decides("allow", `,"updatedInput":"x"`)}, "hook_failed: the hook hooks.json:1 failed: updatedInput is not an object"},
	} {
		t.Run("issue/4-2 "+c.name, func(t *testing.T) {
			if got := before(t, saying(t, c.lines...), `{"command":"ls"}`); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	t.Run("issue/4-2 a hook is not asked again about arguments that it changed", func(t *testing.T) {
		line := `printf '{"hookSpecificOutput":{"updatedInput":{"command":"%s"}}}' "$(wc -c | tr -d ' ')x"`
		if got := before(t, saying(t, line), `{"command":"ls"}`); !strings.HasPrefix(got, `args {"command":"`) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("issue/4-2 a hook's text reaches the model once, even if the hook runs again with other arguments", func(t *testing.T) {
		p := saying(t, `echo '{"hookSpecificOutput":{"additionalContext":"mind"}}'`)
		other := plugin.Static("other", func(r *plugin.Registrar) error {
			r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
				return []plugin.Directive{plugin.ReplaceArgs(json.RawMessage(`{"command":"other"}`))}, nil
			})
			return nil
		})
		s := opened(t, p, other)
		v, err := s.BeforeToolCall(t.Context(), &plugin.ToolCallContext{TurnID: "t", CallID: "c", Tool: "shell", Args: json.RawMessage(`{"command":"ls"}`)})
		if err != nil || string(v.Args) != `{"command":"other"}` {
			t.Fatalf("%+v, %v", v, err)
		}
		all, err := s.Checkpoint(t.Context(), &plugin.CheckpointContext{TurnID: "t", Kind: protocol.BoundaryAfterWork, View: &plugin.View{}})
		if err != nil || len(all) != 1 || all[0].Messages[0].Content != "[From a hook of the plugin kit, PreToolUse]\nmind" {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("issue/4-2 hooks run at the same time, and a duplicate command runs once", func(t *testing.T) {
		meets := func(own, other string) string { // the other one, which must run at the same time
			return `cd "$PLUGIN_DATA"; echo ` + own + ` >> ran; : > ` + own + `; until test -e ` + other + `; do sleep 0.01; done`
		}
		p := saying(t, meets("a", "b"), meets("a", "b"), meets("b", "a"), meets("b", "a")+"; true")
		for _, h := range p.hooks {
			h.timeout = 10 * time.Second
		}
		if got := before(t, p, `{"command":"ls"}`); got != "" {
			t.Errorf("got %q", got)
		}
		ran, err := os.ReadFile(filepath.Join(p.config.Data, "ran"))
		if err != nil || strings.Count(string(ran), "a") != 1 || strings.Count(string(ran), "b") != 2 {
			t.Errorf("ran %q, %v", ran, err)
		}
	})
	t.Run("issue/4-7 the plugin's log has each run, its answer and the hook that decided", func(t *testing.T) {
		p := saying(t, allow, "seq 1000 >&2; "+deny, "kill -9 $$", "no-such-program-anywhere")
		before(t, p, `{"command":"ls"}`)
		var got []string
		for _, l := range p.config.Output.Newest() {
			got = append(got, l.Level.String()+" "+l.Text)
		}
		text := strings.Join(got, "\n")
		for _, want := range []string{
			"INFO 20\n", "DEBUG PreToolUse: the hook hooks.json:1 returned allow after ", "DEBUG PreToolUse: the hook hooks.json:2 returned deny after ",
			"DEBUG PreToolUse: the hook hooks.json:3 returned it was ended by SIGKILL after ", "DEBUG PreToolUse: the hook hooks.json:4 returned it could not run: sh: 1: ",
			"DEBUG PreToolUse: deny, because of hooks.json:2",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
}

func TestHookEnvironment(t *testing.T) {
	t.Run("issue/4-2 a hook runs in the session's directory with the variables of other agents and without secrets", func(t *testing.T) {
		c := config(t)
		c.Environ = append(os.Environ(), "TOKEN=secret", "WANTED=yes")
		hooks, problems := manifest.ParseHooks("hooks.json", []byte(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"sh",
			"args":["-c","env > ${PLUGIN_DATA}/env; pwd -P > ${PLUGIN_DATA}/pwd; echo $0 > ${PLUGIN_DATA}/zero","${WANTED}-${NONE:-default}"]}]}]}}`))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c.Hooks, c.Output = hooks, child.NewLog(quiet)
		p := part(t, c)
		before(t, p, `{"command":"ls"}`)
		read := func(name string) string {
			data, err := os.ReadFile(filepath.Join(c.Data, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		env, cwd := read("env"), strings.TrimSpace(read("pwd"))
		for _, want := range []string{"PLUGIN_ROOT=" + c.Root, "CLAUDE_PLUGIN_ROOT=" + c.Root, "PLUGIN_DATA=" + c.Data, "CLAUDE_PLUGIN_DATA=" + c.Data, "CLAUDE_PROJECT_DIR=", "WANTED=yes"} {
			if !strings.Contains("\n"+env, "\n"+want) {
				t.Errorf("no %q in\n%s", want, env)
			}
		}
		if strings.Contains(env, "TOKEN") || !strings.HasSuffix(strings.TrimSpace(lineOf(env, "CLAUDE_PROJECT_DIR=")), filepath.Base(cwd)) {
			t.Errorf("in %s the environment is\n%s", cwd, env)
		}
		if got := read("zero"); got != "yes-default\n" {
			t.Errorf("the argument is %q", got)
		}
	})
}

func lineOf(text, begin string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	return ""
}
