//go:build unix

package shell_test

import (
	"os"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/monitor"
	"lashd/engine/builtin/shell"
	"lashd/rpc/protocol"
)

// waysToRun are calls of all tools that run commands.
var waysToRun = map[string]string{
	"shell":         `{"command":"rm -rf gone"}`,
	"start_command": `{"command":"rm -rf gone"}`,
	"start_monitor": `{"id":"m","command":"rm -rf gone"}`,
	"write_stdin":   `{"task":"tsk_none","text":"rm -rf gone\n"}`,
}

func TestRulesOfTheShell(t *testing.T) {
	deny, allow := protocol.ApproveDeny, protocol.ApproveAllow
	for _, c := range []struct {
		row    string
		mode   protocol.ApprovalMode
		rule   protocol.ApprovalRule
		denied []string
	}{
		{"a denied command is denied in the background too", allow, protocol.ApprovalRule{Tool: "shell", Command: "rm", Action: deny}, []string{"shell", "start_command", "start_monitor"}},
		{"a denied shell denies all tools that run commands", allow, protocol.ApprovalRule{Tool: "sh*", Action: deny}, []string{"shell", "start_command", "start_monitor", "write_stdin"}},
		{"permission for the shell does not cover other tools", deny, protocol.ApprovalRule{Tool: "shell", Command: "rm", Action: allow}, []string{"start_command", "start_monitor", "write_stdin"}},
		{"a rule for another command denies nothing", allow, protocol.ApprovalRule{Tool: "shell", Command: "git", Action: deny}, nil},
		{"a rule for background commands does not affect the shell", allow, protocol.ApprovalRule{Tool: "start_command", Action: deny}, []string{"start_command"}},
	} {
		t.Run("issue/5-6 "+c.row, func(t *testing.T) {
			d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), shell.New(shell.Config{Environ: os.Environ(), Nonce: t.Name()}), monitor.Factory{})
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
				Cwd: t.TempDir(), Approval: &protocol.ApprovalConfig{Mode: c.mode, Rules: []protocol.ApprovalRule{c.rule}},
			}))(t).SessionID
			denied := map[string]bool{}
			for _, name := range c.denied {
				denied[name] = true
			}
			for name, args := range waysToRun {
				out := builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: name, Args: []byte(args)}))(t).Output
				if got := out.Failure != nil && out.Failure.Code == "denied"; got != denied[name] {
					t.Errorf("%s is denied: %v, want %v: %+v", name, got, denied[name], out.Failure)
				}
			}
		})
	}
}
