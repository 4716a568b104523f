package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/skip"
)

// claudePlugin copies a plugin of testdata/claude into the user's plugin directory. These plugins follow the public documentation of
// Claude Code and know nothing of lashd.
func (h *home) claudePlugin(name string) {
	h.t.Helper()
	if err := os.CopyFS(filepath.Join(h.plugins(), name), os.DirFS(filepath.Join("testdata", "claude", name))); err != nil {
		h.t.Fatal(err)
	}
}

// lash runs lash and returns its output.
func (w *world) lash(args ...string) string {
	w.t.Helper()
	cmd := w.command(append([]string{}, args...)...)
	cmd.Dir = w.work
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("lash %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// denied runs lash run, in whose turn a call is denied.
func (w *world) denied(input string) {
	w.t.Helper()
	cmd := w.command("run", input)
	cmd.Dir, cmd.Stderr = w.work, nil
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 {
		w.t.Fatalf("lash run: %v, want the exit code 3\n%s", err, out)
	}
}

// contains fails the test unless a text has all parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestClaudePlugins(t *testing.T) {
	t.Run("part13/5 commands of a plugin are slash commands with arguments", func(t *testing.T) {
		w := newWorld(t, "ask", step(says("Done.")), step(says("Done.")))
		w.claudePlugin("review-tools")
		d := w.serve()
		defer d.stop()
		p := w.dial("")
		id := p.session(w.home)
		list := ask[protocol.CommandListResult](p, "command/list", protocol.SessionParams{SessionID: id}).Data
		want := []protocol.CommandInfo{
			{Name: "review-tools:review-pr", Kind: "command", Description: "Review a pull request", Hint: "[pr-number] [priority]", Plugin: "review-tools"},
			{Name: "review-tools:summarize", Kind: "command", Description: "Summarize the newest commit for: $ARGUMENTS", Plugin: "review-tools"},
		}
		if len(list) != 3 || list[0].Name != "init" || !reflect.DeepEqual(list[1:], want) {
			t.Errorf("the commands are %+v", list)
		}
		w.lash("run", `/review-tools:review-pr 456 "very high"`)
		contains(t, w.bodies()[0], `"/review-tools:review-pr 456 \"very high\""`,
			`Review pull request #456 with priority very high. See @README.md and $1. All: 456 \"very high\"`,
			"First run each of these commands", "- `git branch --show-current`")
		w.lash("run", "/etc/hosts is a file")
		if got := w.bodies()[1]; strings.Contains(got, "The text of the command") {
			t.Errorf("a path became a command: %s", got)
		}
	})
	t.Run("part13/5 an editor offers commands of plugins, and runs them as prompts", func(t *testing.T) {
		w := newWorld(t, "ask", step(says("Done.")))
		defer w.shutdown()
		w.claudePlugin("review-tools")
		e := w.editor(sdk.ClientCapabilities{})
		e.open(w.work)
		e.until("the commands are offered", func() bool {
			return slices.ContainsFunc(e.updates, func(u sdk.SessionUpdate) bool {
				return u.AvailableCommandsUpdate != nil && slices.ContainsFunc(u.AvailableCommandsUpdate.AvailableCommands, func(c sdk.AvailableCommand) bool {
					return c.Name == "review-tools:review-pr" && c.Input.Unstructured.Hint == "[pr-number] [priority]"
				})
			})
		})
		e.says("/review-tools:review-pr 7 low")
		contains(t, w.bodies()[0], `"/review-tools:review-pr 7 low"`, "Review pull request #7 with priority low.")
		if strings.Contains(e.story(), "Review pull request") || !strings.Contains(e.story(), "The text of the command /review-tools:review-pr of review-tools (") {
			t.Errorf("the editor shows the whole text of the command:\n%s", e.story())
		}
		if !e.shown("agent: Done.") {
			t.Errorf("the editor shows\n%s", e.story())
		}
	})
	t.Run("part13/5 skills are offered by description, read when needed, and their scripts run in the sandbox", func(t *testing.T) {
		skip.Unless(t, "SANDBOX", sandbox.Available() == nil, "there is no sandbox")
		w := newWorld(t, "ask")
		var dir string
		w.model.Think(func(c fakemodel.Chat) fakemodel.Step {
			last := string(c.Messages[len(c.Messages)-1].Content)
			switch _, at, found := strings.Cut(last, "Base directory of this skill: "); {
			case found && dir == "":
				dir, _, _ = strings.Cut(at, "\n")
				return step(uses("skill", map[string]string{"name": "pdf-skills:pdf-forms", "file": "reference.md"}))
			case strings.Contains(last, "surname") && !strings.Contains(last, "fields of"):
				return step(shell("sh " + dir + "/scripts/fields.sh tax.pdf"))
			case strings.Contains(last, "fields of"):
				return step(says("Done."))
			}
			return step(uses("skill", map[string]string{"name": "pdf-skills:pdf-forms"}))
		})
		w.claudePlugin("pdf-skills")
		d := w.serve()
		defer d.stop()
		out := w.lash("run", "--sandbox", "workspace", "--json", "fill in the form")
		all := w.bodies()
		contains(t, all[0], "- pdf-skills:pdf-forms: Fill in PDF forms. Use when: the user asks to fill in or read a form.")
		contains(t, all[1], "Run `sh "+dir+"/scripts/fields.sh FILE`")
		contains(t, all[len(all)-1], "fields of tax.pdf: surname, town")
		contains(t, out, "Done.")
	})
	t.Run("part13/5 servers of a plugin and of the project's .mcp.json have tools", func(t *testing.T) {
		_, err := exec.LookPath("python3")
		skip.Unless(t, "PYTHON", err == nil, "there is no python3")
		w := newWorld(t, "allow", step(uses("mcp__clock__time", struct{}{})), step(says("Done.")), step(uses("mcp__clock__time", struct{}{})), step(says("Done.")))
		w.claudePlugin("clock-server")
		d := w.serve()
		w.lash("run", "what time is it")
		contains(t, w.bodies()[1], "noon in clock-server")
		d.stop()
		if err := os.RemoveAll(filepath.Join(w.plugins(), "clock-server")); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(w.work, os.DirFS("testdata/claude/project")); err != nil {
			t.Fatal(err)
		}
		d = w.serve()
		defer d.stop()
		w.lash("mcp", "add", "mine", "python3", filepath.Join(w.work, "clock.py"))
		eventually(t, "the server of lash mcp add is loaded", func() error {
			if info := w.dial("").listed("mcp"); info.Status != protocol.PluginLoaded {
				return errors.New(string(info.Status))
			}
			return nil
		})
		p := w.dial("")
		if got := p.tools(p.session(w.home)); !slices.Contains(got, "mcp__mine__time") {
			t.Errorf("the session has the tools %q", got)
		}
		read := ask[protocol.PluginReadResult](p, "plugin/read", protocol.PluginReadParams{Name: "project", Cwd: w.work})
		if got := fmt.Sprint(read.Reach.Files); !strings.Contains(got, "clock.py") {
			t.Errorf("approval does not cover the program of the server: %s", got)
		}
		w.lash("plugin", "trust", "project", "--digest", string(read.Digest))
		w.lash("run", "what time is it")
		contains(t, w.bodies()[3], "noon in work")
	})
}

func TestClaudeHooksAndAgents(t *testing.T) {
	t.Run("part13/5 a hook replaces the input of a call, and gets the transcript and the duration", func(t *testing.T) {
		w := newWorld(t, "allow", step(shell("sleep 60; echo slow")), step(says("Quick.")))
		w.claudePlugin("guard-hooks")
		d := w.serve()
		defer d.stop()
		w.lash("run", "do the slow thing")
		contains(t, w.bodies()[1], "quick")
		var noted struct {
			Transcript string `json:"transcript_path"`
			Duration   *int64 `json:"duration_ms"`
			Input      struct {
				Command string `json:"command"`
			} `json:"tool_input"`
			Response struct {
				Stdout string `json:"stdout"`
			} `json:"tool_response"`
		}
		raw, err := os.ReadFile(filepath.Join(w.work, "noted.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &noted); err != nil || noted.Duration == nil || *noted.Duration < 0 || *noted.Duration > 30_000 || noted.Input.Command != "echo quick" || noted.Response.Stdout != "quick\n" {
			t.Errorf("the hook got %s", raw)
		}
		if info, err := os.Stat(noted.Transcript); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the transcript is %v: %v", info, err)
		}
		text, err := os.ReadFile(filepath.Join(w.work, "transcript.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), `{"type":"user","sessionId":"ses_`, `"message":{"role":"user","content":[{"type":"text","text":"do the slow thing"}]}}`)
		for l := range strings.Lines(string(text)) {
			if !json.Valid([]byte(l)) {
				t.Errorf("no JSON: %s", l)
			}
		}
	})
	t.Run("part13/5 a hook that allows and replaces the input has no more authority than before", func(t *testing.T) {
		w := newWorld(t, "deny", step(shell("sleep 60; echo slow")), step(says("Denied.")))
		w.claudePlugin("guard-hooks")
		d := w.serve()
		defer d.stop()
		w.denied("do the slow thing")
		contains(t, w.bodies()[1], "The call was denied. The approval mode `deny` of the session decides.")
	})
	t.Run("part13/5 agents of a plugin are types of subagents with their instructions and tools", func(t *testing.T) {
		w := newWorld(t, "allow")
		w.model.Think(func(c fakemodel.Chat) fakemodel.Step {
			last := string(c.Messages[len(c.Messages)-1].Content)
			switch {
			case last == "look at a.go":
				return step(says("a.go:1: it is empty"))
			case strings.Contains(last, "it is empty"):
				return step(says("Done."))
			}
			return step(uses("spawn_agent", map[string]any{"task": "look at a.go", "type": "review-agents:code-reviewer", "wait": true}))
		})
		w.claudePlugin("review-agents")
		d := w.serve()
		defer d.stop()
		contains(t, w.lash("run", "review it"), "Done.")
		contains(t, w.lash("plugin", "show", "review-agents"), `agents/code-reviewer.md: there is no model with the name "sonnet", so the agent has the model of the session that starts it`)
		all := w.model.Requests()
		contains(t, string(all[0].Body), "- review-agents:code-reviewer: Use this agent to review code. Examples:", `"enum":["review-agents:code-reviewer"]`)
		contains(t, string(all[1].Body), "You are a strict reviewer of code. Name each problem with its file and line.")
		var tools []string
		for _, tool := range all[1].Chat.Tools {
			tools = append(tools, tool.Function.Name)
		}
		slices.Sort(tools)
		if got := strings.Join(tools, " "); got != "glob grep list read submit_error" {
			t.Errorf("the reviewer has the tools %q", got)
		}
	})
}

// project copies the project of testdata/claude into the workspace.
func (h *home) project() {
	h.t.Helper()
	if err := os.CopyFS(h.work, os.DirFS("testdata/claude/project")); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(h.work, ".mcp.json")); err != nil {
		h.t.Fatal(err)
	}
}

// tools are the names of a session's tools.
func (p *peer) tools(id protocol.SessionID) (names []string) {
	for _, tool := range ask[protocol.ToolListResult](p, "tool/list", protocol.SessionParams{SessionID: id}).Data {
		names = append(names, tool.Name)
	}
	return names
}

// commandNames are the slash commands of a session in the workspace, without those that ship with lashd.
func (p *peer) commandNames(id protocol.SessionID) (names []string) {
	for _, c := range ask[protocol.CommandListResult](p, "command/list", protocol.SessionParams{SessionID: id}).Data {
		if c.Plugin != "lashd" {
			names = append(names, c.Name)
		}
	}
	return names
}

// inWork is a plugin as plugin/list reports it for the workspace.
func (p *peer) inWork(w *world, name string) (found protocol.PluginInfo) {
	for _, info := range ask[protocol.PluginListResult](p, "plugin/list", protocol.PluginListParams{Cwd: w.work}).Data {
		if info.Name == name {
			found = info
		}
	}
	return found
}

func TestClaudeLayouts(t *testing.T) {
	t.Run("part13/5 the layout of a workspace is inert until it is trusted, and again after a change", func(t *testing.T) {
		w := newWorld(t, "allow", step(shell("echo forbidden > ran")), step(says("Done.")), step(shell("echo forbidden")), step(says("Denied.")), step(shell("git push origin")), step(says("Denied.")))
		w.project()
		d := w.serve()
		defer d.stop()
		p := w.dial("")
		id := p.session(w.home)
		if got := p.commandNames(id); len(got) != 0 {
			t.Errorf("without trust there are the commands %q", got)
		}
		w.lash("run", "go")
		if w.size("ran") == 0 {
			t.Error("a hook of a layout that nobody trusted denied a command")
		}
		info := p.inWork(w, "project")
		if info.Status != protocol.PluginUntrusted || info.Dir != w.work {
			t.Fatalf("the layout is %+v", info)
		}
		read := ask[protocol.PluginReadResult](p, "plugin/read", protocol.PluginReadParams{Name: "project", Cwd: w.work})
		var what []string
		for _, c := range read.Contributes {
			what = append(what, c.Kind+" "+c.Name)
		}
		contains(t, strings.Join(what, "\n"), "hook PreToolUse", "rule deny path .env", "rule deny command git push", "rule ask command git commit", "rule deny host example.com", "skill changelog", "command fix-issue")
		if len(read.Reach.Files) == 0 || filepath.Base(read.Reach.Files[0].Path) != "guard.sh" {
			t.Errorf("approval does not cover the program of the hook: %+v", read.Reach)
		}
		w.lash("plugin", "trust", "project", "--digest", string(read.Digest))
		if got := strings.Join(p.commandNames(id), " "); got != "changelog fix-issue" {
			t.Errorf("with trust there are the commands %q", got)
		}
		w.denied("/fix-issue 7")
		all := w.bodies()
		contains(t, all[2], "Fix issue 7.", "- changelog: Write an entry of the changelog")
		contains(t, all[3], "the guard of the project denies this")
		w.denied("go")
		all = w.bodies()
		contains(t, all[5], "The call was denied. The rule `deny command git push` of .claude/settings.json decides.")
		contains(t, w.lash("rules", "test", "git push"), "The rule `deny command git push` of .claude/settings.json decides.")
		contains(t, w.lash("rules", "list"), ".claude/settings.json")

		w.file(filepath.Join(w.work, ".claude", "commands", "more.md"), "More.")
		eventually(t, "the change is noticed", func() error {
			if info := p.inWork(w, "project"); info.Status != protocol.PluginModified {
				return errors.New(string(info.Status))
			}
			return nil
		})
		if got := strings.Join(p.commandNames(id), " "); got != "changelog fix-issue" {
			t.Errorf("after a change there are the commands %q", got)
		}
		w.file(filepath.Join(w.work, "code.go"), "package a")
		if info := p.inWork(w, "project"); len(info.Problems) > 0 && strings.Contains(info.Problems[0].Message, "code.go") {
			t.Errorf("other files of the workspace count: %+v", info)
		}
	})
	t.Run("part13/5 sessions in a subdirectory run the approved hooks, however a hook names its file", func(t *testing.T) {
		w := newWorld(t, "allow", step(shell("echo ran")), step(says("Denied.")), step(shell("echo ran")), step(says("Denied.")), step(shell("echo ran")), step(says("Done.")))
		w.file(filepath.Join(w.work, ".git", "HEAD"), "ref: refs/heads/main")
		guard := func(dir, reason string) {
			w.file(filepath.Join(dir, ".claude", "hooks", "guard.sh"), "#!/bin/sh\necho '"+reason+"' \"$@\" >&2\nexit 2\n")
			if err := os.Chmod(filepath.Join(dir, ".claude", "hooks", "guard.sh"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		guard(w.work, "the approved guard")
		sub := filepath.Join(w.work, "sub")
		guard(sub, "a guard that nobody approved")
		hook := func(event, more string) string {
			return `"` + event + `":[{"matcher":"Bash","hooks":[{"type":"command",` + more + `}]}]`
		}
		w.file(filepath.Join(w.work, ".claude", "settings.json"), `{"hooks":{`+hook("PreToolUse", `"command":"\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh"`)+`}}`)
		d := w.serve()
		defer d.stop()
		p := w.dial("")
		trust := func() {
			read := ask[protocol.PluginReadResult](p, "plugin/read", protocol.PluginReadParams{Name: "project", Cwd: w.work})
			w.lash("plugin", "trust", "project", "--digest", string(read.Digest))
		}
		trust()
		w.work = sub
		w.denied("go")
		contains(t, w.bodies()[1], "the approved guard")
		w.work = filepath.Dir(sub)
		w.file(filepath.Join(w.work, ".claude", "settings.json"), `{"hooks":{`+hook("PreToolUse", `"command":"${CLAUDE_PROJECT_DIR}/.claude/hooks/guard.sh","args":["with arguments"]`)+`}}`)
		eventually(t, "the change is noticed", func() error {
			if info := p.inWork(w, "project"); info.Status != protocol.PluginModified {
				return errors.New(string(info.Status))
			}
			return nil
		})
		trust()
		w.denied("go")
		contains(t, w.bodies()[3], "the approved guard with arguments")
		guard(w.work, "a guard after the approval")
		w.denied("go")
		contains(t, w.bodies()[5], "changed since it was approved")
	})
	t.Run("part13/5 a layout in a subdirectory does not switch off plugins of the repository", func(t *testing.T) {
		w := newWorld(t, "ask")
		w.file(filepath.Join(w.work, ".git", "HEAD"), "ref: refs/heads/main")
		w.file(filepath.Join(w.work, ".agents", "plugins", "guard", "commands", "root.md"), "Root.")
		w.file(filepath.Join(w.work, "sub", ".claude", "commands", "sub.md"), "Sub.")
		d := w.serve()
		defer d.stop()
		p := w.dial("")
		names := func(dir string) (all []string) {
			for _, info := range ask[protocol.PluginListResult](p, "plugin/list", protocol.PluginListParams{Cwd: dir}).Data {
				if info.Scope == protocol.ScopeWorkspace {
					all = append(all, info.Name)
				}
			}
			return all
		}
		if got := names(filepath.Join(w.work, "sub")); !slices.Equal(got, []string{"guard"}) {
			t.Errorf("in the subdirectory there are the plugins %q", got)
		}
		if err := os.RemoveAll(filepath.Join(w.work, ".agents")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the layout is listed", func() error {
			if got := names(filepath.Join(w.work, "sub")); !slices.Equal(got, []string{"project"}) {
				return errors.New(strings.Join(got, " "))
			}
			return nil
		})
	})
	t.Run("part13/5 the layout in the home directory needs no trust, and follows changes", func(t *testing.T) {
		w := newWorld(t, "ask", step(says("Done.")))
		w.file(filepath.Join(w.user, ".claude", "commands", "mine.md"), "Mine: $ARGUMENTS")
		w.file(filepath.Join(w.user, ".claude", "projects", "x.jsonl"), "not ours")
		w.file(filepath.Join(w.user, ".claude", "settings.json"), `{"permissions":{"deny":["Bash(git push:*)"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"touch \"$HOME/stopped\""}]}]}}`)
		d := w.serve()
		defer d.stop()
		p := w.dial("")
		id := p.session(w.home)
		if got := strings.Join(p.commandNames(id), " "); got != "mine" {
			t.Errorf("the commands are %q", got)
		}
		w.lash("run", "/mine all of it")
		contains(t, w.bodies()[0], "Mine: all of it")
		if _, err := os.Stat(filepath.Join(w.user, "stopped")); err != nil {
			t.Errorf("the hook in the settings did not run: %v", err)
		}
		contains(t, w.lash("rules", "test", "git push"), "Decision:  deny", "The rule `deny command git push` of ~/.claude/settings.json decides.")
		w.file(filepath.Join(w.user, ".agents", "skills", "notes", "SKILL.md"), "---\ndescription: Take notes\n---\nWrite.")
		eventually(t, "a new skill appears", func() error {
			if got := strings.Join(p.commandNames(p.session(w.home)), " "); got != "mine notes" {
				return errors.New(got)
			}
			return nil
		})
		copies, _ := filepath.Glob(filepath.Join(w.dir, "plugins", "copies", "*", "home", ".claude", "projects"))
		if len(copies) > 0 {
			t.Errorf("other files of .claude were copied: %q", copies)
		}
	})
	t.Run("part13/5 permissions of the home directory hold although a hook beside them has a mistake", func(t *testing.T) {
		w := newWorld(t, "ask", step(says("Done.")))
		settings := filepath.Join(w.user, ".claude", "settings.json")
		w.file(settings, `{"permissions":{"deny":["Bash(git push:*)"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":5}]}]}}`)
		d := w.serve()
		defer d.stop()
		p := w.dial("")
		p.session(w.home)
		contains(t, w.lash("rules", "test", "git push"), "The rule `deny command git push` of ~/.claude/settings.json decides.")
		contains(t, w.lash("plugin"), "settings.json:1", "expected string, got number")
		w.file(settings, `{"permissions":{"deny":["Bash(git pull:*)"]},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true","newer":1},{"type":"later"}]}]}}`)
		eventually(t, "the settings load", func() error {
			if got := w.lash("plugin"); !strings.Contains(got, `hooks of the type "later"`) || !strings.Contains(got, `unknown field "newer"`) {
				return errors.New(got)
			}
			return nil
		})
		contains(t, w.lash("rules", "test", "git pull"), "The rule `deny command git pull` of ~/.claude/settings.json decides.")
		if got := w.lash("rules", "test", "git push"); strings.Contains(got, "settings.json") {
			t.Errorf("a rule that was removed still decides:\n%s", got)
		}
	})
}
