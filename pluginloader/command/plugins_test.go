//go:build unix

package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/shell"
	"lashd/engine/builtin/workspace"
	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// rig is a daemon with built-in tools and a plugin of testdata, and a session in it.
type rig struct {
	*builtintest.Daemon
	model *builtintest.Recorder
	part  *Part
	dir   string // of the session
	id    protocol.SessionID
}

// installed is a plugin of testdata, copied as the loader does it.
func installed(t *testing.T, name string) Config {
	t.Helper()
	c := config(t)
	if err := os.CopyFS(c.Root, os.DirFS("testdata/"+name)); err != nil {
		t.Fatal(err)
	}
	m := load(t, c.Root)
	c.ID, c.Hooks, c.Tools = m.Name, m.CommandHooks, m.Tools
	if c.ID == "001" { // it has no manifest, and so the name of its directory
		c.ID = name
	}
	return c
}

func run(t *testing.T, c Config, calls ...scripted.Call) *rig {
	t.Helper()
	r := &rig{model: &builtintest.Recorder{Provider: calling(calls)}, part: part(t, c), dir: t.TempDir()}
	r.Daemon = builtintest.Start(t, t.TempDir(), 0, r.model, &workspace.Factory{}, shell.New(shell.Config{Environ: os.Environ(), Nonce: nonce}), plugin.Builder(c.ID, r.part.Spec))
	r.id = builtintest.Must(r.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: r.dir}))(t).SessionID
	return r
}

// calling is a model that answers a message with all calls at once, and then with a text.
func calling(calls []scripted.Call) provider.Provider {
	done := scripted.Reply{Text: "done"}
	replies := []scripted.Reply{{ToolCalls: calls}, done}
	if len(calls) == 0 {
		replies = replies[1:]
	}
	return scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "[From a hook"}, Replies: []scripted.Reply{done}}},
		Otherwise: &scripted.Turn{Replies: replies},
	})
}

func (r *rig) turn(t *testing.T, input string) *protocol.TurnReport {
	t.Helper()
	return r.Turn(t, r.id, input)
}

// data is a file of the plugin's data directory.
func (r *rig) data(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.part.config.Data, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// said is all that the model was shown last, in a text.
func (r *rig) said(t *testing.T) string {
	t.Helper()
	var texts []string
	for _, m := range r.model.Last(t).Messages {
		for _, p := range m.Parts {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func TestFormatter(t *testing.T) {
	edits := []scripted.Call{
		{ID: "c1", Name: "write", Args: json.RawMessage(`{"path":"a.txt","content":"one  \ntwo\n"}`)},
		{ID: "c2", Name: "patch", Args: json.RawMessage(`{"patch":"*** Begin Patch\n*** Add File: b.txt\n+three  \n*** Add File: c.txt\n+four\t\n*** End Patch"}`)},
	}
	t.Run("issue/4-2 another agent's formatter runs once per edited file and reports to the model", func(t *testing.T) {
		r := run(t, installed(t, "formatter"), edits...)
		r.turn(t, "edit")
		for name, want := range map[string]string{"a.txt": "one\ntwo\n", "b.txt": "three\n", "c.txt": "four\n"} {
			got, err := os.ReadFile(filepath.Join(r.dir, name))
			if err != nil || string(got) != want {
				t.Errorf("%s is %q, %v; want %q", name, got, err, want)
			}
		}
		for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
			if want := filepath.Join(r.dir, name) + " was tidied; read it again before the next edit."; !strings.Contains(r.said(t), want) {
				t.Errorf("the model is not told %q in\n%s", want, r.said(t))
			}
		}
	})
}

func TestGuard(t *testing.T) {
	command := func(line string) scripted.Call {
		args, _ := json.Marshal(map[string]string{"command": line}) // strings can be JSON
		return scripted.Call{ID: "c1", Name: "shell", Args: args}
	}
	t.Run("issue/4-2 another agent's guard denies a command, and the model reads the reason", func(t *testing.T) {
		r := run(t, installed(t, "guard"), command("rm -rf / --no-preserve-root"))
		if report := r.turn(t, "go"); report.Outcome.Text != "done" {
			t.Errorf("the turn ends with %+v", report.Outcome)
		}
		got := r.Result(t, r.id)
		if got.Failure == nil || got.Failure.Code != "hook_denied" || got.Text != "Nothing is deleted from the root of the file system." {
			t.Errorf("the call returned %+v", got)
		}
	})
	t.Run("issue/4-2 a hook can make lashd ask a person", func(t *testing.T) {
		for _, choice := range []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject} {
			r := run(t, installed(t, "guard"), command("echo git push"))
			began := builtintest.Must(r.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: r.id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}}}))(t)
			d := r.decision(t)
			if d.Kind != protocol.DecisionApproval || !strings.Contains(d.Prompt, "It publishes commits.") {
				t.Errorf("the question is %+v", d)
			}
			builtintest.Must(r.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash}))(t)
			builtintest.Must(r.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: began.TurnID}))(t)
			ran := strings.HasPrefix(r.Result(t, r.id).Text, "git push\n")
			if ran != (choice == protocol.ChooseAllowOnce) {
				t.Errorf("after %s the call returned %+v", choice, r.Result(t, r.id))
			}
		}
	})
	t.Run("issue/4-2 a hook changes a command, and fields that lashd does not have are ignored", func(t *testing.T) {
		r := run(t, installed(t, "guard"), command("pip install x"))
		r.turn(t, "go")
		if got := r.Result(t, r.id); !strings.HasPrefix(got.Text, "pip install --no-input x\n") {
			t.Errorf("the call returned %+v", got)
		}
	})
	t.Run("issue/4-2 a guard whose file is missing denies the call", func(t *testing.T) {
		r := run(t, installed(t, "guard"), command("echo hello"))
		if err := os.Remove(filepath.Join(r.part.config.Root, "scripts/guard.sh")); err != nil {
			t.Fatal(err)
		}
		r.turn(t, "go")
		if got := r.Result(t, r.id); got.Failure == nil || got.Failure.Code != "hook_failed" {
			t.Errorf("the call returned %+v", got)
		}
	})
}

// decision waits for the question that the turn asks.
func (r *rig) decision(t *testing.T) protocol.Decision {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if all := builtintest.Must(r.Decisions.List(t.Context(), &protocol.DecisionListParams{SessionID: r.id}))(t).Data; len(all) > 0 {
			return all[0]
		}
	}
	t.Fatal("no question was asked")
	return protocol.Decision{}
}

func TestContext(t *testing.T) {
	t.Run("issue/4-2 start and prompt hooks add text for the model, and a stop hook continues the turn once", func(t *testing.T) {
		r := run(t, installed(t, "context"))
		write(t, r.dir, map[string]string{"main.go": "package main\n"})
		report := r.turn(t, "hello")
		if report.Outcome.Kind != protocol.OutcomeAssistantMessage {
			t.Fatalf("the turn ends with %+v %+v", report.Outcome, report.Issues)
		}
		for _, want := range []string{
			"hello\n[From a hook of the plugin context, SessionStart]\nThe project in " + r.dir + " has these files:\nmain.go\n" +
				"[From a hook of the plugin context, UserPromptSubmit]\nAnswer briefly.", "[A hook asks you to continue, from the plugin context]\nRun the tests first.",
		} {
			if !strings.Contains(r.said(t), want) {
				t.Errorf("the model is not told\n%s\nin\n%s", want, r.said(t))
			}
		}
		stops := strings.Split(strings.TrimSpace(r.data(t, "stops")), "\n")
		if len(stops) != 2 || !strings.Contains(stops[0], `"stop_hook_active":false,"last_assistant_message":"done"`) || !strings.Contains(stops[1], `"stop_hook_active":true`) {
			t.Errorf("the hook of the end read %q", stops)
		}
		if start := r.data(t, "start.json"); !strings.Contains(start, `"permission_mode":"bypassPermissions","hook_event_name":"SessionStart"`) || !strings.Contains(start, `"source":"startup"`) ||
			!strings.Contains(start, `"session_id":"`+string(r.id)+`","transcript_path":"`+filepath.Join(r.part.config.Data, "transcripts", string(r.id)+".jsonl")+`","cwd":"`+r.dir+`"`) {
			t.Errorf("the hook of the beginning read %s", start)
		}
		if err := os.Remove(filepath.Join(r.part.config.Data, "start.json")); err != nil {
			t.Fatal(err)
		}
		r.turn(t, "again")
		if _, err := os.Stat(filepath.Join(r.part.config.Data, "start.json")); err == nil {
			t.Error("the second turn is a beginning, too")
		}
		r.Stop()
		if end := r.data(t, "ends"); strings.Count(end, `"hook_event_name":"SessionEnd"`) != 1 || !strings.Contains(end, `"reason":"other"`) {
			t.Errorf("at the end the hook read %q", end)
		}
	})
	t.Run("issue/4-2 a rejected prompt ends the turn with the reason before any model call", func(t *testing.T) {
		r := run(t, installed(t, "context"))
		report := r.turn(t, "forget all")
		if report.Outcome.Kind != protocol.OutcomePluginAbort || len(report.Issues) != 1 || report.Issues[0].Code != "prompt_refused" || report.Issues[0].Message != "Nothing is forgotten here." {
			t.Errorf("the turn ends with %+v %+v", report.Outcome, report.Issues)
		}
		if len(r.model.Asked) != 0 {
			t.Errorf("the model was asked %d times", len(r.model.Asked))
		}
	})
	t.Run("issue/4-2 a child session runs the subagent hooks and no stop hooks", func(t *testing.T) {
		r := run(t, installed(t, "context"))
		child := builtintest.Must(r.Sessions.New(t.Context(), &protocol.SessionNewParams{
			Cwd: r.dir, Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: r.id},
		}))(t).SessionID
		r.Turn(t, child, "hello")
		got := r.data(t, "subagents")
		for _, want := range []string{`"session_id":"` + string(child) + `"`, `"hook_event_name":"SubagentStop"`, `"agent_id":"` + string(child) + `","agent_type":"child"`} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
		for _, name := range []string{"stops", "start.json"} {
			if _, err := os.Stat(filepath.Join(r.part.config.Data, name)); err == nil {
				t.Errorf("%s: a hook of sessions that are no children was asked in one", name)
			}
		}
		if want := "[From a hook of the plugin context, SubagentStart]\nfor a child"; !strings.Contains(r.said(t), want) {
			t.Errorf("the child reads\n%s", r.said(t))
		}
	})
}

// with is a plugin of hooks that stand in a text like hooks.json.
func with(t *testing.T, hooksJSON string) Config {
	t.Helper()
	c := config(t)
	hooks, problems := manifest.ParseHooks("hooks.json", []byte(`{"hooks":`+hooksJSON+`}`))
	for _, p := range problems {
		t.Fatal(p)
	}
	c.Hooks = hooks
	return c
}

const active = "\"stop_hook_active\":true\n"

func TestTurns(t *testing.T) {
	list := scripted.Call{ID: "c1", Name: "list", Args: json.RawMessage(`{}`)}
	for name, calls := range map[string][]scripted.Call{"": nil, ", with other calls in between": {list}} {
		t.Run("issue/4-2 hooks can continue a turn eight times in a row, and no more"+name, func(t *testing.T) {
			r := run(t, with(t, `{"Stop":[{"hooks":[{"type":"command","command":"grep -o '\"stop_hook_active\":[a-z]*' >> $PLUGIN_DATA/n; echo again >&2; exit 2"}]}]}`), calls...)
			const once = "\"stop_hook_active\":false\n" + active + active + active + active + active + active + active + active
			report := r.turn(t, "hello")
			if report.Outcome.Kind != protocol.OutcomeAssistantMessage || r.data(t, "n") != once {
				t.Errorf("%+v after\n%s", report.Outcome, r.data(t, "n"))
			}
			r.turn(t, "hello")
			if got := r.data(t, "n"); got != once+once {
				t.Errorf("after the second turn it was asked\n%s", got)
			}
		})
	}
	t.Run("issue/4-2 continue: false ends the turn after the call, and denies a call that has not run", func(t *testing.T) {
		for event, code := range map[string]string{"PreToolUse": "hook_halted", "PostToolUse": ""} {
			r := run(t, with(t, `{"`+event+`":[{"matcher":"LS","hooks":[{"type":"command","command":"echo '{\"continue\":false,\"stopReason\":\"enough\"}'"}]}]}`), list)
			report := r.turn(t, "hello")
			if report.Outcome.Kind != protocol.OutcomePluginAbort || report.Issues[0].Code != "hook_halted" || report.Issues[0].Message != "enough" {
				t.Errorf("%s: the turn ends with %+v %+v", event, report.Outcome, report.Issues)
			}
			if len(r.model.Asked) != 1 {
				t.Errorf("%s: the model was asked %d times", event, len(r.model.Asked))
			}
			got := ""
			if f := report.ToolCalls[0].Output.Failure; f != nil {
				got = f.Code
			}
			if got != code {
				t.Errorf("%s: the call returned %q, want %q", event, got, code)
			}
		}
	})
	t.Run("issue/4-2 the model reads the text of a hook before a call, whether or not the call runs", func(t *testing.T) {
		r := run(t, with(t, `{"PreToolUse":[{"hooks":[{"type":"command","command":"echo '{\"decision\":\"block\",\"reason\":\"no\",\"hookSpecificOutput\":{\"additionalContext\":\"mind the gap\"}}'"}]}]}`), list)
		r.turn(t, "hello")
		if want := "[From a hook of the plugin kit, PreToolUse]\nmind the gap"; strings.Count(r.said(t), want) != 1 {
			t.Errorf("the model reads\n%s", r.said(t))
		}
	})
	t.Run("issue/4-2 a hook after a call can replace its result", func(t *testing.T) {
		r := run(t, with(t, `{"PostToolUse":[{"matcher":"list","hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"updatedToolOutput\":\"masked\"}}'"}]}]}`), list)
		r.turn(t, "hello")
		if got := r.Result(t, r.id); got.Text != "masked" {
			t.Errorf("the call returned %+v", got)
		}
	})
	t.Run("issue/4-2 hooks run for failed calls, cancelled turns, failed turns, settings and model calls", func(t *testing.T) {
		note := func(event string) string {
			return `"` + event + `":[{"hooks":[{"type":"command","command":"cat >> $PLUGIN_DATA/` + event + `"}]}]`
		}
		r := run(t, with(t, `{`+note("PostToolUseFailure")+`,`+note("StopFailure")+`,`+note("ConfigChange")+`,`+note("PreModelRequest")+`,`+note("PostModelRequest")+`}`),
			scripted.Call{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"missing.txt"}`)})
		r.turn(t, "hello")
		if got := r.data(t, "PostToolUseFailure"); !strings.Contains(got, `"tool_name":"Read","tool_input":{"file_path":"`+r.dir+`/missing.txt"},"tool_use_id":"c1","tool_response":{"success":false,`) || !strings.Contains(got, `"is_interrupt":false`) {
			t.Errorf("after a failure: %s", got)
		}
		if n := strings.Count(r.data(t, "PreModelRequest"), "PreModelRequest"); n < 2 {
			t.Errorf("before model calls: %d", n)
		}
		if got := r.data(t, "PostModelRequest"); !strings.Contains(got, `"last_assistant_message":"done"`) {
			t.Errorf("after a reply: %s", got)
		}
		builtintest.Must(r.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: r.id, Prompt: new("be brief")}))(t)
		if got := r.data(t, "ConfigChange"); !strings.Contains(got, `"hook_event_name":"ConfigChange"`) {
			t.Errorf("after a change of settings: %s", got)
		}
	})
	t.Run("issue/4-2 cancelling a turn ends its running hooks at once", func(t *testing.T) {
		r := run(t, with(t, `{"PreToolUse":[{"hooks":[{"type":"command","command":"echo > $PLUGIN_DATA/began; sleep 600"}]}],"Interrupt":[{"hooks":[{"type":"command","command":"cat > $PLUGIN_DATA/interrupt"}]}]}`), list)
		began := builtintest.Must(r.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: r.id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}}}))(t)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(r.part.config.Data, "began")); err == nil {
				break
			}
		}
		start := time.Now()
		builtintest.Must(r.Turns.Interrupt(t.Context(), "cli_a", &protocol.TurnInterruptParams{TurnID: began.TurnID}))(t)
		report := builtintest.Must(r.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: began.TurnID}))(t)
		if took := time.Since(start); report.Outcome.Kind != protocol.OutcomeCancelled || took > 50*time.Second {
			t.Errorf("%+v after %s", report.Outcome, took)
		}
		if got := r.data(t, "interrupt"); !strings.Contains(got, `"hook_event_name":"Interrupt"`) {
			t.Errorf("after it: %s", got)
		}
	})
}

// summing summarises everything, and wants that after each turn.
var summing = plugin.Static("summing", func(r *plugin.Registrar) error {
	r.Context().Compactor(0, func(context.Context, *plugin.CompactRequest) ([]protocol.NodeBody, error) {
		return []protocol.NodeBody{{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "so far"}}}}}, nil
	})
	r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) {
		return []plugin.Directive{plugin.Compact()}, nil
	})
	return nil
})

func TestCompaction(t *testing.T) {
	c := with(t, `{"PreCompact":[
		{"matcher":"auto","hooks":[{"type":"command","command":"cat > $PLUGIN_DATA/auto"}]},
		{"matcher":"manual","hooks":[{"type":"command","command":"cat > $PLUGIN_DATA/manual; echo not now >&2; exit 2"}]}]}`)
	p := part(t, c)
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), plugin.Builder("kit", p.Spec), summing)
	id := d.Session(t, nil)
	d.Turn(t, id, "hello")
	d.Turn(t, id, "again") // begins after the compaction that the first one wants
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(c.Data, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	t.Run("issue/4-2 compaction hooks see whether a person asked for it, and can prevent it", func(t *testing.T) {
		if got := read("auto"); !strings.Contains(got, `"trigger":"auto","custom_instructions":""`) {
			t.Errorf("told %s", got)
		}
		_, err := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id, Instructions: "keep names"})
		if err == nil || !strings.Contains(err.Error(), "not now") {
			t.Errorf("compact: %v", err)
		}
		if got := read("manual"); !strings.Contains(got, `"trigger":"manual","custom_instructions":"keep names"`) {
			t.Errorf("told %s", got)
		}
	})
}

func TestContract(t *testing.T) {
	t.Run("issue/4-2 command tools, and command hooks of every event, keep the plugin contract", func(t *testing.T) {
		var events []string
		for _, e := range manifest.Events() {
			if e.Slot != "" {
				events = append(events, `"`+e.Name+`":[{"hooks":[{"type":"command","command":"true"}]}]`)
			}
		}
		c := with(t, "{"+strings.Join(events, ",")+"}")
		c.Tools = []manifest.Tool{{Name: "one", Description: "d", Command: []string{"true"}}}
		plugintest.Run(t, plugin.Builder("kit", part(t, c).Spec), plugintest.Config{
			Build: plugin.BuildContext{SessionID: "ses_kit", Cwd: t.TempDir(), StateDir: t.TempDir()}, Seams: time.Minute,
		})
	})
}
