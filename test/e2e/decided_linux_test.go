package e2e

import (
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// TestDecisionOfASandboxedCommand reads why a command ran without a question: from its first event, and from history after a SIGKILL.
func TestDecisionOfASandboxedCommand(t *testing.T) {
	w := confined(t, step(shell("echo made")), done)
	d := w.serve()
	p := w.dial("cli_one")
	id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{
		Cwd: w.work, Approval: &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace},
	}).SessionID
	p.attach(id, 0)
	p.turn(id, "go")
	started := p.event("the call begins", func(e protocol.Event) bool {
		return e.Type == protocol.EventItemStarted && e.Item.Kind == protocol.ItemToolCall
	})
	d.kill()
	w.serve()
	p = w.dial("cli_two")
	for where, items := range map[string][]protocol.Item{
		"item/started": {*started.Item}, "history after SIGKILL": ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: id}).Data,
	} {
		found := false
		for _, item := range items {
			if item.Kind != protocol.ItemToolCall {
				continue
			}
			found = true
			if d := item.Decision; d == nil || d.Mode != protocol.ApproveAllow || d.Why.By != protocol.DecidedBySandbox || !strings.Contains(d.Why.Text, "sandbox") || d.Choice != "" {
				t.Errorf("part11/3 %s has the decision %+v", where, d)
			}
		}
		if !found {
			t.Errorf("part11/3 %s has no call", where)
		}
	}
}
