package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/audit"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// TestAuditRecords makes one call in a turn, and checks its audit record, its place in the log, and that it costs no commit.
func TestAuditRecords(t *testing.T) {
	none := 0
	for _, c := range []struct {
		row, tool string
		approval  protocol.ApprovalConfig
		want      string   // kind and reason of the record
		around    []string // the event before the record and the one after it
	}{
		{"a tool that only reads", "reads", protocol.ApprovalConfig{}, "", nil},
		{"a call that a rule allows", "run", protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: "run", Action: protocol.ApproveAllow}}}, "allowed rule", []string{"item/started", "item/completed"}},
		{"a call that the mode allows", "run", protocol.ApprovalConfig{Mode: protocol.ApproveAllow}, "allowed mode", []string{"item/started", "item/completed"}},
		{"an unknown tool", "unknown", protocol.ApprovalConfig{}, "", nil},
		{"a call that a rule denies", "run", protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: "run", Action: protocol.ApproveDeny}}}, "refused rule", []string{"item/completed", "model/recorded"}},
	} {
		t.Run("part11/5 "+c.row, func(t *testing.T) {
			reads := says("reads", "read")
			reads.kind = protocol.ToolKindRead
			d := start(t, setup{model: replies(calls(c.tool), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("run", "ran"), reads}})
			id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Approval: &c.approval})).SessionID
			_, before, err := d.Handed(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			turn := d.turn(t, id, "go")
			_, after, err := d.Handed(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			switch n := after - before; {
			case c.want == "":
				none = n
			case n != none:
				t.Errorf("the turn made %d commits, want %d as without a record", n, none)
			}
			var got, types []string
			for _, a := range must[*protocol.AuditListResult](t)(audit.List(t.Context(), d.store, &protocol.AuditListParams{SessionID: id})).Data {
				got = append(got, string(a.Kind)+" "+string(a.Why.By))
			}
			if strings.Join(got, ", ") != c.want {
				t.Fatalf("the records are %q, want %q", got, c.want)
			}
			for _, e := range must[*protocol.TurnTraceResult](t)(d.Turns.Trace(t.Context(), &protocol.TurnTraceParams{TurnID: turn.TurnID})).Data {
				types = append(types, string(e.Type))
			}
			if at := slices.Index(types, "audit/recorded"); c.want != "" && (types[at-1] != c.around[0] || types[at+1] != c.around[1]) {
				t.Errorf("the record is in the log at %q, want it between %q", types, c.around)
			}
		})
	}
	t.Run("part11/5 a log that is complete and unchanged is reported as such", func(t *testing.T) {
		d := start(t, setup{model: replies(calls("run"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("run", "ran")}})
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Approval: allowing})).SessionID
		d.turn(t, id, "go")
		if v := must[*protocol.AuditVerifyResult](t)(audit.Verify(t.Context(), d.store, &protocol.SessionParams{SessionID: id})); v.Problem != "" || v.Events < 5 {
			t.Errorf("a sound log: %+v", v)
		}
	})
}

// outsider is a plugin with a program outside a sandbox.
type outsider struct{ hooked }

func (outsider) Sandboxed() bool { return false }

func (outsider) Outside(protocol.SandboxMode) []plugin.Program {
	return []plugin.Program{{Tool: "mcp", Command: "x: server", Why: "A person trusts it."}}
}

// outsideOf returns the records of what ran outside a sandbox in a session.
func (d *daemon) outsideOf(t *testing.T, id protocol.SessionID) (all []string) {
	t.Helper()
	for _, a := range must[*protocol.AuditListResult](t)(audit.List(t.Context(), d.store, &protocol.AuditListParams{SessionID: id, Kind: protocol.AuditOutside})).Data {
		all = append(all, fmt.Sprintf("%s %q by %s", a.Tool, a.Subject, a.Why.By))
	}
	return all
}

func TestAuditOfPrograms(t *testing.T) {
	for mode, want := range map[protocol.SandboxMode][]string{protocol.SandboxWorkspace: {`mcp "x: server" by trust`}, protocol.SandboxFullAccess: nil} {
		t.Run("issue/20-5 a program of a plugin that runs outside in a session has one record, if the session has a sandbox: "+string(mode), func(t *testing.T) {
			d := start(t, setup{model: replies(), plugins: []plugin.Factory{outsider{toolbox("p")}}})
			id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Approval: &protocol.ApprovalConfig{Sandbox: mode}})).SessionID
			d.turn(t, id, "go")
			d.turn(t, id, "again")
			if got := d.outsideOf(t, id); !slices.Equal(got, want) {
				t.Errorf("the records are %q, want %q", got, want)
			}
		})
	}
	t.Run("issue/20-5 a code cell that a client runs outside a sandbox has a record", func(t *testing.T) {
		s, control := desks(&notes{})
		control.replays = false // so it is not confined to the calls of tools
		d := start(t, s)
		id := d.session(t)
		d.look(t, id, "set a 1")
		must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), writing(id, "set b 2", "k")))
		if got, want := d.outsideOf(t, id), []string{`code "set a 1" by client`, `code "set b 2" by client`}; !slices.Equal(got, want) {
			t.Errorf("the records are %q, want %q", got, want)
		}
	})
}
