package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// telling is a tool that declares which target it changes.
type telling struct{ toolFunc }

func (telling) Subjects(_ string, args json.RawMessage) []tool.Subject {
	var known struct{ Target string }
	_ = json.Unmarshal(args, &known)
	return []tool.Subject{{Path: known.Target}}
}

func TestOverlayTools(t *testing.T) {
	shell := says("shell", "ran")
	shell.kind = protocol.ToolKindExecute
	look := says("look", "seen")
	look.kind = protocol.ToolKindRead
	claims := func(name, id string, kind protocol.ToolKind) protocol.ClientTool {
		return protocol.ClientTool{ToolManifest: protocol.ToolManifest{Name: name, ID: id, Kind: kind}}
	}
	deny := func(command string) *protocol.ApprovalConfig {
		return &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "shell", Command: command, Action: protocol.ApproveDeny}}}
	}
	edit := says("edit", "changed")
	edit.kind = protocol.ToolKindEdit
	patch := telling{says("patch", "changed")}
	patch.kind = protocol.ToolKindEdit
	other := &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "look", Command: "touch", Action: protocol.ApproveDeny}}}
	allow := func(command string) *protocol.ApprovalConfig {
		return &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "shell", Command: command, Action: protocol.ApproveAllow}}}
	}
	for _, c := range []struct {
		name     string
		approval *protocol.ApprovalConfig
		tool     protocol.ClientTool
		args     string
		want     protocol.ApprovalMode
	}{
		{"the name of a tool that is asked about", &protocol.ApprovalConfig{}, claims("shell", "", protocol.ToolKindRead), `{}`, protocol.ApproveAsk},
		{"the id of a tool that is asked about", &protocol.ApprovalConfig{}, claims("sh", "shell", protocol.ToolKindRead), `{}`, protocol.ApproveAsk},
		{"a kind of its own saying", &protocol.ApprovalConfig{}, claims("peek", "", protocol.ToolKindRead), `{}`, protocol.ApproveAsk},
		{"the kind of one that thinks", &protocol.ApprovalConfig{}, claims("peek", "", protocol.ToolKindThink), `{}`, protocol.ApproveAsk},
		{"the name of a tool that only reads", &protocol.ApprovalConfig{}, claims("look", "", protocol.ToolKindRead), `{}`, protocol.ApproveAllow},
		{"the name of one that only reads, and changes things", &protocol.ApprovalConfig{}, claims("look", "", protocol.ToolKindEdit), `{}`, protocol.ApproveAsk},
		{"the id of a tool that a rule denies", deny(""), claims("sh", "shell", protocol.ToolKindRead), `{}`, protocol.ApproveDeny},
		{"the name, with a command that a rule denies", deny("touch"), claims("shell", "", protocol.ToolKindRead), `{"command":"touch x"}`, protocol.ApproveDeny},
		{"the name, with a command that no rule denies", deny("touch"), claims("shell", "", protocol.ToolKindRead), `{"command":"ls"}`, protocol.ApproveAllow},
		{"the name, and hides the command from a rule of another tool", other, claims("shell", "", protocol.ToolKindRead), `{"run":"touch x"}`, protocol.ApproveAllow},
		{"the name of one that changes a protected file", allowing, claims("edit", "", protocol.ToolKindRead), `{"path":".envrc"}`, protocol.ApproveAsk},
		{"the name of one that alone knows that it changes a protected file", allowing, claims("patch", "", protocol.ToolKindEdit), `{"target":".envrc"}`, protocol.ApproveAsk},
		{"the name, and hides the command from a rule that allows", allow("touch"), claims("shell", "", protocol.ToolKindRead), `{"run":"touch x"}`, protocol.ApproveAllow},
		{"another name, and starts programs outside the sandbox", &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: protocol.SandboxWorkspace}, claims("editor_run_task", "", protocol.ToolKindExecute), `{"name":"build"}`, protocol.ApproveAsk},
		{"another name, and starts programs where there is no sandbox", allowing, claims("editor_run_task", "", protocol.ToolKindExecute), `{"name":"build"}`, protocol.ApproveAllow},
		{"another name, and changes files", &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: protocol.SandboxWorkspace}, claims("editor_apply_edit", "", protocol.ToolKindEdit), `{"path":"a"}`, protocol.ApproveAllow},
		{"the name, and hides the command", deny("touch"), claims("shell", "", protocol.ToolKindRead), `{"run":"touch x"}`, protocol.ApproveAsk},
	} {
		t.Run("outside/8 a tool of a client is judged by "+c.name, func(t *testing.T) {
			call := scripted.Reply{ToolCalls: []scripted.Call{{ID: "c1", Name: c.tool.Name, Args: json.RawMessage(c.args)}}}
			d := start(t, setup{model: replies(call), tools: []tool.Provider{shell, look, edit, patch}})
			id := d.session(t)
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: c.approval}))
			must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, Tools: []protocol.ClientTool{c.tool}}))
			o := d.observe(t, id)
			turn := d.begin(t, id, "go").TurnID
			means := map[protocol.EventType]protocol.ApprovalMode{
				protocol.EventDecisionOpened: protocol.ApproveAsk, protocol.EventToolRequested: protocol.ApproveAllow, protocol.EventTurnCompleted: protocol.ApproveDeny,
			}
			got := means[o.until(func(e protocol.Event) bool { return means[e.Type] != "" }).Type]
			d.interrupt(t, turn)
			if d.wait(t, turn); got != c.want {
				t.Errorf("the result is %q, want %q", got, c.want)
			}
		})
	}
	t.Run("outside/8 hooks get the tool kind by which a call is judged", func(t *testing.T) {
		for _, c := range []struct {
			name string
			says protocol.ToolKind
			want string
		}{{"peek", protocol.ToolKindRead, "other"}, {"look", protocol.ToolKindRead, "read"}, {"look", protocol.ToolKindEdit, "edit"}} {
			told := &notes{}
			d := start(t, setup{model: replies(calls(c.name)), tools: []tool.Provider{shell, look, edit}, plugins: plugins(hooked{"watcher", func(r *plugin.Registrar) {
				r.ToolCalls().Before(func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
					told.add(string(c.Kind))
					return []plugin.Directive{plugin.ShortCircuit(protocol.Succeed("seen"))}, nil
				})
			}})})
			id := d.session(t)
			must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, Tools: []protocol.ClientTool{claims(c.name, "", c.says)}}))
			if d.turn(t, id, "go"); !slices.Equal(told.list, []string{c.want}) {
				t.Errorf("of a client's %s that says %s, a hook got %q, want %q", c.name, c.says, told.list, c.want)
			}
		}
	})
}

// TestAnswersToReplacements allows calls of a client's tool that replaces a tool with an approval rule.
func TestAnswersToReplacements(t *testing.T) {
	shell := says("shell", "ran")
	d := start(t, setup{model: obeying("shell"), tools: []tool.Provider{shell}})
	id := d.session(t)
	asks := &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "shell", Action: protocol.ApproveAsk}}}
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: asks}))
	must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{
		SessionID: id, Tools: []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "shell"}}},
	}))
	for _, want := range []protocol.EventType{protocol.EventDecisionOpened, protocol.EventToolRequested} {
		o := d.observe(t, id)
		turn := d.begin(t, id, "shell").TurnID
		e := o.until(func(e protocol.Event) bool {
			return e.Type == protocol.EventDecisionOpened || e.Type == protocol.EventToolRequested
		})
		if e.Type != want {
			t.Errorf("outside/29 first comes %s, want %s", e.Type, want)
		}
		if q := e.Decision; q != nil {
			p := &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowSession, ArgsHash: q.ArgsHash}
			must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", p))
			o.typed(protocol.EventToolRequested)
		}
		d.interrupt(t, turn)
		d.wait(t, turn)
	}
}
