package turn

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"lashd/engine/graph"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// testDriver is a minimal driver with native tool calls. Tests replace single functions.
type testDriver struct {
	prepare func(View) []Action
	reply   func(View, provider.Reply) []Action
	results func(View, []ToolReply) []Action
	cell    func(View, CellReply) []Action
	limit   func(View) []Action
	handles bool
}

func (d testDriver) Prepare(v View) []Action {
	if d.prepare != nil {
		return d.prepare(v)
	}
	return []Action{StartModel(provider.ToolsAuto, provider.OutputSpec{})}
}

func (d testDriver) Reply(v View, r provider.Reply) []Action {
	if d.reply != nil {
		return d.reply(v, r)
	}
	msg := r.Message()
	if calls := msg.Calls(); len(calls) > 0 {
		return []Action{Append(msg), StartTools(calls)}
	}
	return []Action{Append(msg), CheckpointThen(protocol.BoundaryBeforeCompletion,
		&protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: msg.Text(protocol.PartProse)})}
}

func (d testDriver) Results(v View, rs []ToolReply) []Action {
	if d.results != nil {
		return d.results(v, rs)
	}
	return []Action{Append(resultsOfBatch(rs)), CheckpointThen(protocol.BoundaryAfterWork, nil)}
}

func (d testDriver) Cell(v View, r CellReply) []Action {
	if d.cell != nil {
		return d.cell(v, r)
	}
	return []Action{Advance()}
}

func (d testDriver) Limit(v View) []Action {
	if d.limit != nil {
		return d.limit(v)
	}
	return []Action{Finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: "limit"})}
}

func (testDriver) Visible(prose string) string { return "visible " + prose }

func (d testDriver) HandlesOutputLimit() bool { return d.handles }

func resultsOfBatch(rs []ToolReply) protocol.Message {
	msg := protocol.Message{Role: protocol.RoleUser}
	for _, r := range rs {
		msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{
			CallID: r.CallID, Name: r.Name, Output: r.Output, Order: r.Order,
		}})
	}
	return msg
}

var unbounded = Config{Input: []protocol.Message{user("hello")}, Budget: protocol.Budget{Iterations: -1}}

func bounded(n int) Config {
	cfg := unbounded
	cfg.Budget.Iterations = n
	return cfg
}

func user(text string) protocol.Message { return textOf(protocol.RoleUser, protocol.PartText, text) }

func textOf(role protocol.Role, kind protocol.PartKind, text string) protocol.Message {
	return protocol.Message{Role: role, Parts: []protocol.Part{{Kind: kind, Text: text}}}
}

// says answers a model call with prose.
func says(text string) Response {
	return Response{Model: &ModelReply{Reply: provider.Reply{
		Stop: protocol.StopEnd, Parts: []protocol.Part{{Kind: protocol.PartProse, Text: text}},
	}}}
}

// calls answers a model call with tool calls.
func calls(ids ...protocol.CallID) Response {
	reply := provider.Reply{Stop: protocol.StopToolUse}
	for _, id := range ids {
		reply.Parts = append(reply.Parts, protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{
			CallID: id, Name: "look", Args: json.RawMessage(`{}`),
		}})
	}
	return Response{Model: &ModelReply{Reply: reply}}
}

func succeed(ids ...protocol.CallID) Response {
	var r Response
	for i, id := range ids {
		r.Tools = append(r.Tools, ToolReply{CallID: id, Output: protocol.Succeed("ok"), Order: i})
	}
	return r
}

func fails(ids ...protocol.CallID) Response {
	r := succeed(ids...)
	for i := range r.Tools {
		r.Tools[i].Output = protocol.Fail(protocol.FailExecution, "no", "no", protocol.FromTool)
	}
	return r
}

var nothing = Response{Checkpoint: &Delivery{}}

// waiting performs effects until the machine waits for one of the kind. It answers syncs and checkpoints with nothing.
func waiting(t *testing.T, m *Machine, kind EffectKind) Effect {
	t.Helper()
	for {
		e, ok := m.Next()
		switch {
		case !ok:
			t.Fatalf("the turn ended (%+v) before a %s effect", m.Result().Outcome, kind)
		case e.Kind == kind:
			return e
		case e.Kind == EffectSync:
			m.Deliver(e.ID, Response{Sync: &Environment{}})
		case e.Kind == EffectCheckpoint:
			m.Deliver(e.ID, nothing)
		case e.Waits():
			t.Fatalf("the machine waits for %s, not for %s", e.Kind, kind)
		}
	}
}

// answer answers the next effect of the kind.
func answer(t *testing.T, m *Machine, kind EffectKind, r Response) Effect {
	t.Helper()
	e := waiting(t, m, kind)
	m.Deliver(e.ID, r)
	return e
}

// drain returns the remaining effects. It answers syncs and checkpoints with nothing.
func drain(t *testing.T, m *Machine) []Effect {
	t.Helper()
	var effects []Effect
	for {
		e, ok := m.Next()
		if !ok {
			return effects
		}
		effects = append(effects, e)
		switch e.Kind {
		case EffectSync:
			m.Deliver(e.ID, Response{Sync: &Environment{}})
		case EffectCheckpoint:
			m.Deliver(e.ID, nothing)
		default:
			if e.Waits() {
				return effects
			}
		}
	}
}

// ended returns the outcome of a finished turn, after checking the invariants of every outcome.
func ended(t *testing.T, m *Machine) protocol.TurnOutcome {
	t.Helper()
	effects := drain(t, m)
	r := m.Result()
	if r.Outcome == nil {
		t.Fatalf("the turn has no outcome; effects: %v", kinds(effects))
	}
	done := slices.DeleteFunc(slices.Clone(effects), func(e Effect) bool { return e.Kind != EffectDone })
	if len(done) != 1 || effects[len(effects)-1].Kind != EffectDone {
		t.Errorf("effects at the end are %v, want done once and last", kinds(effects))
	}
	if err := resumable(r.Messages); err != nil {
		t.Error(err)
	}
	return *r.Outcome
}

func resumable(msgs []protocol.Message) error {
	var pointers []*protocol.Message
	for i := range msgs {
		pointers = append(pointers, &msgs[i])
	}
	return graph.ResumeSafe(pointers)
}

func kinds(effects []Effect) []EffectKind {
	var list []EffectKind
	for _, e := range effects {
		list = append(list, e.Kind)
	}
	return list
}

func texts(msgs []protocol.Message) []string {
	var list []string
	for _, m := range msgs {
		var text strings.Builder
		text.WriteString(string(m.Role) + ":")
		for _, p := range m.Parts {
			text.WriteString(p.Text)
			if p.Call != nil {
				text.WriteString("call " + string(p.Call.CallID))
			}
			if p.Result != nil {
				text.WriteString("result " + string(p.Result.CallID) + " " + string(p.Result.Output.Status))
			}
		}
		list = append(list, text.String())
	}
	return list
}

func encoded(t interface{ Fatal(...any) }, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
