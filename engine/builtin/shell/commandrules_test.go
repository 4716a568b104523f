//go:build unix

package shell_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/monitor"
	"lashd/engine/builtin/shell"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// TestRulesOfCommands lets the model call tools that run commands. No approval is ever given, so a call runs only if a rule or the
// mode allows it.
func TestRulesOfCommands(t *testing.T) {
	deny, allow, ask := protocol.ApproveDeny, protocol.ApproveAllow, protocol.ApproveAsk
	for _, c := range []struct {
		row    string
		mode   protocol.ApprovalMode
		action protocol.ApprovalMode
		rule   string
		tool   string
		args   map[string]any
		runs   bool
	}{
		{"a tab", allow, deny, "touch", "shell", map[string]any{"command": "touch\tran"}, false},
		{"a second command", allow, deny, "touch", "shell", map[string]any{"command": "true; touch ran"}, false},
		{"a subshell", allow, deny, "touch", "shell", map[string]any{"command": "(touch ran)"}, false},
		{"env", allow, deny, "touch", "shell", map[string]any{"command": "env touch ran"}, false},
		{"a path", allow, deny, "touch", "shell", map[string]any{"command": "/usr/bin/touch ran"}, false},
		{"a pipe into a shell", allow, deny, "touch", "shell", map[string]any{"command": "echo touch ran | sh"}, false},
		{"in the background", allow, deny, "touch", "start_command", map[string]any{"command": "true && touch ran"}, false},
		{"in a monitor", allow, deny, "touch", "start_monitor", map[string]any{"id": "m", "command": "nice touch ran"}, false},
		{"another program", allow, deny, "touch", "shell", map[string]any{"command": "echo touch >ran"}, true},
		{"a directory named like an allowed program", ask, allow, "git", "shell", map[string]any{"command": "git/evil.sh"}, false},
		{"a path out of an allowed directory", ask, allow, "./scripts", "shell", map[string]any{"command": "./scripts/../evil.sh"}, false},
		{"a program of an allowed directory", ask, allow, "./scripts", "shell", map[string]any{"command": "./scripts/good.sh"}, true},
		{"the same path in another directory", ask, allow, "./scripts", "shell", map[string]any{"command": "./scripts/good.sh", "workdir": "other"}, false},
		{"a protected directory, which does not matter for commands", allow, deny, "touch", "shell", map[string]any{"command": "../scripts/good.sh", "workdir": ".git"}, true},
		{"an allowed directory from elsewhere", ask, allow, "./scripts", "shell", map[string]any{"command": "../scripts/good.sh", "workdir": "other"}, true},
		{"the same path of a monitor in another directory", ask, allow, "./scripts", "start_monitor", map[string]any{"id": "m", "command": "./scripts/good.sh", "cwd": "other"}, false},
	} {
		t.Run("outside/6 "+string(c.action)+" "+c.rule+": "+c.row, func(t *testing.T) {
			ws := t.TempDir()
			for _, name := range []string{"scripts/good.sh", "evil.sh", "git/evil.sh", "other/scripts/good.sh", ".git/x"} {
				script(t, filepath.Join(ws, name), "#!/bin/sh\n: >"+filepath.Join(ws, "ran")+"\n")
			}
			args, err := json.Marshal(c.args)
			if err != nil {
				t.Fatal(err)
			}
			model := scripted.New(&scripted.Script{Turns: []scripted.Turn{{Replies: []scripted.Reply{
				{ToolCalls: []scripted.Call{{ID: "c1", Name: c.tool, Args: args}}}, {Text: "done"},
			}}}})
			d := builtintest.Start(t, t.TempDir(), 0, model, shell.New(shell.Config{Environ: os.Environ(), Nonce: t.Name()}), monitor.Factory{})
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: ws, Approval: &protocol.ApprovalConfig{
				Mode: c.mode, Sandbox: protocol.SandboxFullAccess, DeadlineMs: 1, Rules: []protocol.ApprovalRule{{Tool: "*", Command: c.rule, Action: c.action}},
			}}))(t).SessionID
			out := d.Turn(t, id, "go").ToolCalls[0].Output
			if denied := out.Failure != nil && out.Failure.Code == "denied"; denied == c.runs {
				t.Errorf("denied: %v: %+v", denied, out)
			}
			if _, err := os.Stat(filepath.Join(ws, "ran")); (err == nil) != c.runs {
				t.Errorf("it ran: %v, want %v", err == nil, c.runs)
			}
		})
	}
}

func script(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
