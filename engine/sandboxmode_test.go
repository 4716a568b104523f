package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/audit"
	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestSandboxOfPluginCommands(t *testing.T) {
	t.Run("part11/1 commands that a plugin has lash run get no wider mode than the session's, whatever it asks for", func(t *testing.T) {
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

func TestSandboxOfDeclaredMonitors(t *testing.T) {
	d := start(t, setup{model: replies(), plugins: []plugin.Factory{declaring("p", protocol.MonitorSpec{ID: "a", Command: "true", ArmOn: protocol.ArmSession})}})
	for _, c := range []struct {
		session, want protocol.SandboxMode
		audit         string // of the monitor
	}{
		{protocol.SandboxReadOnly, protocol.SandboxReadOnly, ""},
		{protocol.SandboxWorkspace, protocol.SandboxWorkspace, ""},
		{protocol.SandboxFullAccess, "", "outside monitor monitor:p:a:1 true by trust"},
	} {
		t.Run("issue/20-2 a monitor that a plugin declares runs in the sandbox of the session: "+string(c.session), func(t *testing.T) {
			id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Approval: &protocol.ApprovalConfig{Sandbox: c.session}})).SessionID
			m := must[*protocol.MonitorStatusResult](t)(d.Monitors.Status(t.Context(), &protocol.SessionParams{SessionID: id})).Data[0]
			task := must[*protocol.TaskReadResult](t)(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: m.TaskID}})).Task
			if m.Spec.Sandbox != c.want || task.Spec.Command.Sandbox != c.want {
				t.Errorf("the monitor has %q, its task %q, want %q", m.Spec.Sandbox, task.Spec.Command.Sandbox, c.want)
			}
			var recorded strings.Builder
			for _, a := range must[*protocol.AuditListResult](t)(audit.List(t.Context(), d.store, &protocol.AuditListParams{SessionID: id})).Data {
				recorded.WriteString(fmt.Sprintf("%s %s %s %s by %s", a.Kind, a.Tool, a.TaskID, a.Subject, a.Why.By))
			}
			if recorded.String() != c.audit {
				t.Errorf("the audit has %q, want %q", recorded.String(), c.audit)
			}
		})
	}
	t.Run("issue/20-2 a change of the mode applies to its next run", func(t *testing.T) {
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Approval: &protocol.ApprovalConfig{Sandbox: protocol.SandboxFullAccess}})).SessionID
		w := &watched{daemon: d, t: t, id: id}
		w.status()
		w.stop("p:a")
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{Sandbox: protocol.SandboxReadOnly}}))
		got := must[*protocol.MonitorResult](t)(d.Monitors.Start(t.Context(), "", &protocol.MonitorStartParams{SessionID: id, Spec: protocol.MonitorSpec{ID: "p:a"}}))
		if got.Monitor.Spec.Sandbox != protocol.SandboxReadOnly {
			t.Errorf("it runs in %q", got.Monitor.Spec.Sandbox)
		}
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

func TestSignalsOfPlugins(t *testing.T) {
	shell := func(mode protocol.SandboxMode) protocol.TaskSpec {
		return protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "sleep 600", Sandbox: mode}}
	}
	stdin := func(id protocol.TaskID) *protocol.TaskSignalParams {
		return &protocol.TaskSignalParams{TaskParams: protocol.TaskParams{TaskID: id}, Name: "stdin", Payload: json.RawMessage(`{"text":"x"}`)}
	}
	t.Run("part11/7 a plugin cannot write to a command with a wider sandbox than the session's", func(t *testing.T) {
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			modes := map[protocol.TaskID]protocol.SandboxMode{"tsk_none": "", "tsk_full": protocol.SandboxFullAccess, "tsk_workspace": protocol.SandboxWorkspace}
			for id, mode := range modes {
				d.task(t, s, id, shell(mode))
			}
			loaded := authority.FromLoaded(t.Context())
			refused := func(ctx context.Context) (ids []protocol.TaskID) {
				for id := range modes {
					if _, err := host.Tasks.SignalTask(ctx, stdin(id)); errors.As(err, new(*plugin.UnavailableError)) {
						ids = append(ids, id)
					}
				}
				slices.Sort(ids)
				return ids
			}
			for mode, want := range map[protocol.SandboxMode][]protocol.TaskID{
				protocol.SandboxReadOnly: {"tsk_full", "tsk_none", "tsk_workspace"}, protocol.SandboxWorkspace: {"tsk_full", "tsk_none"}, protocol.SandboxFullAccess: nil,
			} {
				must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: s, Approval: &protocol.ApprovalConfig{Sandbox: mode}}))
				if got := refused(loaded); !slices.Equal(got, want) {
					t.Errorf("in the mode %s it cannot write to %q, want %q", mode, got, want)
				}
				if got := refused(t.Context()); got != nil {
					t.Errorf("in the mode %s, a tool of lashd, whose call was judged, cannot write to %q", mode, got)
				}
			}
		})
	})
	t.Run("part11/7 nor can a tool of a plugin, by an intent", func(t *testing.T) {
		into := protocol.ToolIntent{SignalTask: &protocol.SignalTaskIntent{TaskID: "tsk_full", Name: "stdin", Payload: json.RawMessage(`{"text":"x"}`)}}
		d := start(t, setup{model: obeying("writes"), plugins: []plugin.Factory{foreign{toolbox("p", wanting("writes", into))}}})
		id := d.session(t)
		d.task(t, id, "tsk_full", shell(protocol.SandboxFullAccess))
		for mode, want := range map[protocol.SandboxMode]protocol.IntentRefusal{protocol.SandboxWorkspace: protocol.IntentInvalid, protocol.SandboxFullAccess: ""} {
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{
				SessionID: id, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: mode},
			}))
			if got := refusedTo(d.turn(t, id, "writes")); !slices.Equal(got, []protocol.IntentRefusal{want}) {
				t.Errorf("in the mode %s it is refused as %q, want %q", mode, got, want)
			}
		}
	})
}
