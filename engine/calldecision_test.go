package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// decided returns the decision in an item, as a word for each of its fields; "none" without one.
func decided(item protocol.Item) string {
	d := item.Decision
	if d == nil {
		return "none"
	}
	all := []string{string(d.Mode), string(d.Why.By)}
	if d.Why.Rule != nil {
		all = append(all, d.Why.Rule.String(), string(d.Why.Level))
	}
	if d.Choice != "" {
		all = append(all, string(d.Choice), d.By)
	}
	if d.Why.Text == "" {
		all = append(all, "without a sentence")
	}
	return strings.Join(all, " ")
}

// decisionsIn returns the decisions in events of a type by tool.
func decisionsIn(o *observer, kind protocol.EventType) map[string]string {
	all := map[string]string{}
	for _, e := range o.of(kind) {
		if e.Item.Kind == protocol.ItemToolCall {
			all[e.Item.Tool] = decided(*e.Item)
		}
	}
	return all
}

// decisionsOf returns the decisions in the items of a session by tool.
func (d *daemon) decisionsOf(t *testing.T, id protocol.SessionID) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, item := range must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Data {
		if item.Kind == protocol.ItemToolCall {
			all[item.Tool] = decided(item)
		}
	}
	return all
}

// TestDecisionsOfItems makes calls that are decided in each way, and reads how from events, from history, and after a restart.
func TestDecisionsOfItems(t *testing.T) {
	reads := says("reads", "read")
	reads.kind = protocol.ToolKindRead
	rules := &protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{
		{Tool: "run", Action: protocol.ApproveAllow}, {Tool: "denied", Action: protocol.ApproveDeny},
	}}
	d := start(t, setup{
		model: replies(calls("reads", "run", "denied", "asked", "unknown"), scripted.Reply{Text: "done"}),
		tools: []tool.Provider{says("run", "ran"), says("denied", "ran"), says("asked", "ran"), reads},
	})
	id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Approval: rules})).SessionID
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	q := o.typed(protocol.EventDecisionOpened).Decision
	must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: q.ArgsHash}))
	o.over(turn)
	began := map[string]string{
		"reads": "allow mode", "run": "allow rule allow tool run session", "denied": "deny rule deny tool denied session", "asked": "none", "unknown": "none",
	}
	ended := map[string]string{
		"reads": "allow mode", "run": "allow rule allow tool run session", "denied": "deny rule deny tool denied session", "asked": "allow mode allowOnce cli_a", "unknown": "none",
	}
	equal := func(t *testing.T, where string, got, want map[string]string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the decisions are\n%v, want\n%v", where, got, want)
		}
	}
	t.Run("part11/3 the decision is in item/started, or in item/completed if it comes later", func(t *testing.T) {
		equal(t, "started", decisionsIn(o, protocol.EventItemStarted), began)
		equal(t, "completed", decisionsIn(o, protocol.EventItemCompleted), ended)
	})
	t.Run("part11/3 history has it", func(t *testing.T) { equal(t, "history", d.decisionsOf(t, id), ended) })
	t.Run("part11/3 a fork has it", func(t *testing.T) {
		equal(t, "fork", d.decisionsOf(t, d.fork(t, id, "").SessionID), ended)
	})
	t.Run("part11/3 a later reader of the log gets the same events, also after a restart", func(t *testing.T) {
		for _, restarted := range []bool{false, true} {
			if restarted {
				d = d.restart(t, nil)
				equal(t, "history after a restart", d.decisionsOf(t, id), ended)
			}
			late := d.observe(t, id, o.first.Seq)
			late.over(turn)
			if !slices.Equal(o.durable(), late.durable()) {
				t.Errorf("restarted %v: the events are\n%s, want\n%s", restarted, strings.Join(late.durable(), "\n"), strings.Join(o.durable(), "\n"))
			}
		}
	})
}

// TestDecisionsOfInterruptedCalls restarts the daemon while a call runs that is safe to repeat.
func TestDecisionsOfInterruptedCalls(t *testing.T) {
	g := newGate("safe")
	g.contract = protocol.ToolContract{Replay: protocol.ReplaySafe}
	d := start(t, setup{model: replies(calls("safe"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}, config: asking})
	id := d.session(t)
	turn := d.asks(t, id)
	must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: turn.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: turn.ArgsHash}))
	<-g.called
	d = d.restart(t, nil)
	must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
	<-g.called
	want := "allow mode allowOnce cli_a"
	shown := func(when string) {
		t.Helper()
		for _, item := range d.observe(t, id).first.Items {
			if item.Kind == protocol.ItemToolCall && decided(item) != "none" {
				t.Errorf("part11/3 %s, a snapshot has the decision %q, and the events before it have none", when, decided(item))
			}
		}
	}
	shown("while the call runs")
	d = d.restart(t, nil)
	must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
	<-g.called
	shown("while the call runs again")
	close(g.open)
	d.wait(t, turn.TurnID)
	if got := d.decisionsOf(t, id)["safe"]; got != want {
		t.Errorf("part11/3 after the call ran again, its decision is %q, want %q", got, want)
	}
}

// TestReasonOfADeniedCall denies a call with a reason, and reads the reason from the event and from history.
func TestReasonOfADeniedCall(t *testing.T) {
	d := start(t, setup{model: replies(calls("asked"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("asked", "ran")}})
	id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAsk}})).SessionID
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	q := o.typed(protocol.EventDecisionOpened).Decision
	const reason = "We still need it until June."
	must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseReject, Reason: reason}))
	o.over(turn)
	items := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Data
	for _, e := range o.of(protocol.EventItemCompleted) {
		items = append(items, *e.Item)
	}
	found := 0
	for _, item := range items {
		if item.Tool == "asked" {
			found++
			if got := item.Decision.Reason; got != reason {
				t.Errorf("the reason is %q, want %q", got, reason)
			}
		}
	}
	if found != 2 {
		t.Errorf("the call is %d times in history and events, want 2", found)
	}
}
