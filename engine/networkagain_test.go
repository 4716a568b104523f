package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// confiner is a tool that runs its programs in the sandbox.
type confiner struct{ toolFunc }

func (confiner) Programs(string, json.RawMessage) tool.Programs { return tool.ProgramsInside }

func TestHostsOfRepeatedCalls(t *testing.T) {
	t.Run("part11/network a call repeated after a crash reaches the hosts that were allowed, whatever rules there are now", func(t *testing.T) {
		began, again := make(chan *protocol.NetworkAccess, 1), make(chan *protocol.NetworkAccess, 1)
		opens := confiner{toolFunc{name: "opens", kind: protocol.ToolKindExecute, contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
			if call.Attempt == 1 {
				began <- call.Network
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			again <- call.Network
			return tool.Result{Output: protocol.Succeed("opened")}, nil
		}}}
		model := scripted.New(&scripted.Script{Turns: []scripted.Turn{{Replies: []scripted.Reply{
			{ToolCalls: []scripted.Call{{Name: "opens", Args: json.RawMessage(`{"command":"true","hosts":["a.test"]}`)}}}, {Text: "done"},
		}}}})
		d := start(t, setup{model: model, tools: []tool.Provider{opens}})
		rules := []protocol.ApprovalRule{{Host: "*.test", Action: protocol.ApproveAllow}, {Host: "c.test", Action: protocol.ApproveDeny}}
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
			Cwd: t.TempDir(), Approval: &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: rules},
		})).SessionID
		turn := d.begin(t, id, "go").TurnID
		want := &protocol.NetworkAccess{Granted: []string{"a.test"}, Rules: []protocol.HostRules{{Allow: []string{"*.test"}}}, Denied: []string{"c.test"}}
		if diff := cmp.Diff(want, <-began); diff != "" {
			t.Errorf("the first attempt: %s", diff)
		}
		d = d.restart(t, nil)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{
			SessionID: id, Approval: &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace},
		}))
		d.wait(t, turn)
		if diff := cmp.Diff(want, <-again); diff != "" {
			t.Errorf("the next attempt: %s", diff)
		}
	})
}

func TestHostsOfPluginCommands(t *testing.T) {
	t.Run("part11/network commands that a plugin has lash run in a sandbox reach no hosts", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{
				SessionID: s, Approval: &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace},
			}))
			wanted := &protocol.NetworkAccess{Granted: []string{"*"}}
			spec := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "true", Network: wanted}}
			loaded := authority.FromLoaded(t.Context())
			if got := must[*protocol.TaskResult](t)(host.Tasks.StartTask(loaded, &plugin.TaskStart{Spec: spec})).Task.Spec.Command.Network; got != nil {
				t.Errorf("its task reaches %+v", got)
			}
			m := must[*protocol.MonitorResult](t)(host.Monitors.Start(loaded, &protocol.MonitorStartParams{Spec: protocol.MonitorSpec{ID: "m", Command: "true", Network: wanted}}))
			if got := m.Monitor.Spec.Network; got != nil {
				t.Errorf("its monitor reaches %+v", got)
			}
			if got := must[*protocol.TaskResult](t)(host.Tasks.StartTask(t.Context(), &plugin.TaskStart{Spec: spec})).Task.Spec.Command.Network; got == nil {
				t.Error("a tool of lashd, whose call was judged, reaches no hosts")
			}
			spec.Command.Network = &protocol.NetworkAccess{Granted: []string{"a b"}}
			if _, err := host.Tasks.StartTask(t.Context(), &plugin.TaskStart{Spec: spec}); err == nil {
				t.Error("a wrong host is accepted")
			}
		})
	})
}
