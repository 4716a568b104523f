package engine_test

import (
	"testing"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestSandboxOfPluginCommands(t *testing.T) {
	t.Run("part11/1 commands that a plugin has lashd run get no wider mode than the session's, whatever it asks for", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{
				SessionID: s, Approval: &protocol.ApprovalConfig{Sandbox: protocol.SandboxReadOnly},
			}))
			loaded := authority.FromLoaded(t.Context())
			for _, asked := range []protocol.SandboxMode{"", protocol.SandboxFullAccess, protocol.SandboxWorkspace} {
				spec := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "true", Sandbox: asked}}
				got := must[*protocol.TaskResult](t)(host.Tasks.StartTask(loaded, &plugin.TaskStart{Spec: spec})).Task.Spec.Command.Sandbox
				if got != protocol.SandboxReadOnly {
					t.Errorf("the plugin asks for %q and gets %q", asked, got)
				}
				spec.Command.Detach, spec.Recovery = true, protocol.RecoverExternal
				if _, err := host.Tasks.StartTask(loaded, &plugin.TaskStart{Spec: spec}); err == nil {
					t.Errorf("the plugin starts a detached command, which is in no sandbox")
				}
			}
			m := must[*protocol.MonitorResult](t)(host.Monitors.Start(loaded, &protocol.MonitorStartParams{Spec: protocol.MonitorSpec{ID: "m", Command: "true"}}))
			if got := m.Monitor.Spec.Sandbox; got != protocol.SandboxReadOnly {
				t.Errorf("its monitor gets %q", got)
			}
			spec := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "true"}}
			if got := must[*protocol.TaskResult](t)(host.Tasks.StartTask(t.Context(), &plugin.TaskStart{Spec: spec})).Task.Spec.Command.Sandbox; got != "" {
				t.Errorf("a tool of lashd, whose call was judged, gets %q", got)
			}
		})
	})
}

func TestSandboxModeInRequests(t *testing.T) {
	d := start(t, setup{})
	id := d.session(t)
	configure := func(a protocol.ApprovalConfig) (protocol.SandboxMode, error) {
		if _, err := d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: &a}); err != nil {
			return "", err
		}
		return must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Config.Approval.Sandbox, nil
	}
	t.Run("part11/1 a change of the approval settings without a mode keeps the sandbox", func(t *testing.T) {
		if got, err := configure(protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}); got != protocol.SandboxWorkspace || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := configure(protocol.ApprovalConfig{Mode: protocol.ApproveAllow}); got != protocol.SandboxWorkspace || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("part11/1 an unknown mode is rejected", func(t *testing.T) {
		if _, err := configure(protocol.ApprovalConfig{Sandbox: "none"}); err == nil {
			t.Error("it is accepted")
		}
	})
}
