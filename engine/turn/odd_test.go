package turn

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// oddDriver does what a reply tells it to, valid or not, with raw JSON that Go would format differently.
type oddDriver struct {
	limit int
	cut   bool
}

func (d oddDriver) Prepare(v View) []Action {
	n, _ := strconv.Atoi(strings.Trim(string(v.State), `[ "<]`))
	state := json.RawMessage(`[ "<` + strconv.Itoa(n+1) + `" ]`)
	return []Action{
		SetState(state), Emit(protocol.PluginNode{Type: "odd", Body: state}),
		StartModel(provider.ToolsAuto, provider.OutputSpec{Schema: json.RawMessage(` { "type" : "<object>" } `)}),
	}
}

func (d oddDriver) Reply(v View, r provider.Reply) []Action {
	msg := r.Message()
	if calls := msg.Calls(); len(calls) > 0 {
		return []Action{Append(msg), StartTools(calls)}
	}
	text := msg.Text(protocol.PartProse)
	finish := protocol.TurnOutcome{Kind: protocol.OutcomeFinalValue, Text: text, Value: json.RawMessage("{ \"<\" : \"\xff\" }")}
	lost := protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{
		{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "lost", Name: "look"}},
	}}
	actions := map[string][]Action{
		"code":     {Append(msg), StartCode(Cell{Language: "star", Source: text + "\xff"})},
		"repair":   {Append(msg), NoProgress(), Advance()},
		"grace":    {Append(msg), GraceFinal()},
		"stall":    {Append(msg)},
		"conflict": {StartTools(nil), CheckpointThen(protocol.BoundaryAfterWork, nil)},
		"again":    {StartModel(provider.ToolsAuto, provider.OutputSpec{})},
		"value":    {Append(msg), Finish(finish), Append(msg), Advance()},
		"lost":     {Append(lost), Finish(finish)},
		"report":   {Report(protocol.Issue{Message: text}), Advance()},
	}
	if do, ok := actions[text]; ok {
		return do
	}
	return []Action{Append(msg), CheckpointThen(protocol.BoundaryBeforeCompletion, &finish)}
}

func (d oddDriver) Results(v View, rs []ToolReply) []Action {
	if i, c := FirstControl(rs); c != nil {
		return []Action{Finish(protocol.TurnOutcome{Kind: protocol.OutcomeToolValue, Tool: rs[i].Name, Value: c.Value, Frame: c.Frame})}
	}
	return []Action{Append(resultsOfBatch(rs)), CheckpointThen(protocol.BoundaryAfterWork, nil)}
}

func (d oddDriver) Cell(v View, r CellReply) []Action {
	out := protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartOutput, Text: r.Printed + r.Error}}}
	return []Action{Append(out), CheckpointThen(protocol.BoundaryAfterWork, nil)}
}

func (d oddDriver) Limit(v View) []Action {
	return [][]Action{
		nil, {Advance()}, {GraceFinal()}, {StartModel(provider.ToolsAuto, provider.OutputSpec{})},
		{Append(user("over")), Finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns})},
	}[d.limit]
}

func (oddDriver) Visible(prose string) string { return strings.ToUpper(prose) }

func (d oddDriver) HandlesOutputLimit() bool { return d.cut }

// draw returns an answer to an effect of a kind, or without the effect one that arrives at the wrong time.
func draw(t *rapid.T, kind EffectKind, e *Effect) Response {
	switch kind {
	case EffectSync:
		return Response{Sync: &Environment{System: text(t), Tools: drawManifests(t)}}
	case EffectModel:
		return Response{Model: drawReply(t, e)}
	case EffectTools:
		return Response{Tools: drawResults(t, e)}
	case EffectCode:
		return Response{Code: &CellReply{
			Printed: text(t), Error: pick(t, "cell error", []string{"", "", "bad"}), Value: sound(t),
			Calls: pick(t, "cell calls", [][]protocol.ToolCallRecord{nil, {}, {{CallID: "n", Name: "look", Parent: "cell"}}}),
		}}
	default:
		return Response{Checkpoint: drawDelivery(t)}
	}
}

// pick chooses evenly, which rapid's own generators do not: they like the first and the small.
func pick[T any](t *rapid.T, label string, from []T) T {
	n := 0
	for _, bit := range rapid.SliceOfN(rapid.Bool(), 12, 12).Draw(t, label) {
		n *= 2
		if bit {
			n++
		}
	}
	return from[n%len(from)]
}

// chance is true once in 2^n times.
func chance(t *rapid.T, n int, label string) bool {
	return !slices.Contains(rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, label), false)
}

func text(t *rapid.T) string {
	return pick(t, "text", []string{"", "hi", "<&> \u2028", "cut \xff\xfe off", "日本"})
}

// sound is valid JSON that encoding reformats.
func sound(t *rapid.T) json.RawMessage {
	return pick(t, "raw", []json.RawMessage{
		nil, {}, json.RawMessage(`null`), json.RawMessage(` { "a" : "<b>" } `), json.RawMessage("\"\xff\""), json.RawMessage(`1.0e2`),
	})
}

// raw is valid JSON or nothing.
func raw(t *rapid.T) json.RawMessage {
	if chance(t, 4, "broken") {
		return json.RawMessage(`{"broken`)
	}
	if s := sound(t); len(s) > 0 {
		return s
	}
	return nil
}

func drawManifests(t *rapid.T) []protocol.ToolManifest {
	return pick(t, "tools", [][]protocol.ToolManifest{
		nil, {}, {{Name: "look", Input: json.RawMessage(` {"type" : "object"} `)}, {Name: "leap", Description: "<far>"}},
	})
}

func drawReply(t *rapid.T, e *Effect) *ModelReply {
	r := &ModelReply{Record: protocol.CallRecord{Model: text(t), Attempts: pick(t, "attempts", [][]protocol.CallAttempt{nil, {}, {{}}})}}
	r.Reply.Stop = protocol.StopEnd
	if chance(t, 4, "cut") {
		r.Reply.Stop = pick(t, "stop reason", []protocol.StopReason{
			protocol.StopUnknown, protocol.StopToolUse, protocol.StopOutputLimit, protocol.StopContentFilter, protocol.StopCancelled,
		})
	}
	id := "stale"
	if e != nil {
		id = strconv.FormatUint(e.ID, 10)
	}
	for i := range pick(t, "parts", []int{0, 1, 2, 3, 3, 3}) {
		r.Reply.Parts = append(r.Reply.Parts, drawPart(t, id+"."+strconv.Itoa(i)))
	}
	if chance(t, 2, "instructed") {
		do := pick(t, "instruction", []string{"code", "repair", "report"})
		if chance(t, 3, "mistake or end") {
			do = pick(t, "mistake", []string{"grace", "stall", "conflict", "again", "value", "lost"})
		}
		r.Reply.Parts = []protocol.Part{{Kind: protocol.PartProse, Text: do}}
	}
	if e != nil && e.Model.Output.Schema != nil && !callsTools(r.Reply) {
		if r.Value = sound(t); len(r.Value) == 0 {
			r.Value, r.Problem = nil, "problem <&> \xff"
		}
	}
	r.Reply.Usage = pick(t, "usage", []*protocol.Usage{nil, {}, {Input: 1, Output: 2}})
	if chance(t, 5, "overflow") {
		r.Reply.Usage = pick(t, "too many", []*protocol.Usage{{Input: 1 << 62}, {Output: -1}})
	}
	switch {
	case chance(t, 5, "failed"):
		r.Error = &protocol.Issue{Kind: "provider", Message: text(t)}
	case chance(t, 5, "cancelled during"):
		r.Cancel = &protocol.CancelEvidence{RequestID: "during", Reason: text(t)}
	}
	return r
}

func drawPart(t *rapid.T, id string) protocol.Part {
	switch pick(t, "part", []int{0, 1, 2, 3, 3, 3, 3}) {
	case 0:
		return protocol.Part{Kind: protocol.PartReasoning, Text: text(t), Replay: raw(t), Route: "r"}
	case 1:
		return protocol.Part{Kind: protocol.PartProse, Text: text(t)}
	case 2:
		return protocol.Part{Kind: protocol.PartToolCall} // an adapter's mistake
	default:
		return protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{
			CallID: protocol.CallID(id), Name: text(t), Args: raw(t),
		}}
	}
}

func drawResults(t *rapid.T, e *Effect) []ToolReply {
	replies := []ToolReply{{CallID: "unknown"}}
	if e != nil {
		for _, c := range e.Tools.Calls {
			for range pick(t, "results of a call", []int{0, 1, 1, 1, 2}) {
				replies = append(replies, drawResult(t, c.CallID))
			}
		}
	}
	return rapid.Permutation(replies).Draw(t, "results")
}

func drawResult(t *rapid.T, id protocol.CallID) ToolReply {
	r := ToolReply{CallID: id, Args: raw(t), Order: pick(t, "order", []int{0, 1, 2})}
	r.Output = protocol.ToolOutput{
		Status: pick(t, "status", []protocol.OutputStatus{
			protocol.OutputSuccess, protocol.OutputFailure, protocol.OutputCancelled, protocol.OutputUnknown,
		}),
		Text: text(t), Value: raw(t),
	}
	r.Control = pick(t, "control", []*protocol.ToolControl{
		nil, nil, nil, nil, nil, nil, nil, {Kind: protocol.ControlFail}, {Kind: protocol.ControlFinish, Value: json.RawMessage(` [ 1 ] `)},
		{Kind: protocol.ControlSwitchFrame}, {Kind: protocol.ControlSwitchFrame, Frame: &protocol.FrameSwitch{Nodes: []protocol.NodeBody{}}},
	})
	return r
}

func drawDelivery(t *rapid.T) *Delivery {
	d := &Delivery{}
	if chance(t, 1, "nothing enters") {
		return d
	}
	d.Inputs = messages(t, "inputs")
	d.Messages = messages(t, "messages")
	d.Transient = messages(t, "transient")
	for _, id := range pick(t, "causes", [][]string{nil, nil, {"c1"}, {"c2"}, {"c2", "c1", "c2"}}) {
		d.Inputs = append(d.Inputs, woken(id))
	}
	if chance(t, 4, "abort") {
		d.Abort = &protocol.Issue{Kind: "plugin", Code: "no", Message: text(t)}
	}
	return d
}

func messages(t *rapid.T, label string) []protocol.Message {
	var list []protocol.Message
	for range pick(t, label, []int{0, 0, 1, 2}) {
		list = append(list, message(t))
	}
	return list
}

func message(t *rapid.T) protocol.Message {
	m := protocol.Message{
		Role: pick(t, "role", []protocol.Role{
			protocol.RoleUser, protocol.RoleUser, protocol.RoleSystem, protocol.RoleEvent, protocol.RoleAssistant,
		}),
		Parts: []protocol.Part{{Kind: protocol.PartText, Text: text(t), Replay: sound(t)}},
	}
	switch pick(t, "more", []int{0, 1, 2}) {
	case 0:
		m.Parts = append(m.Parts, protocol.Part{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Type: "t", Data: []byte{}}})
	case 1:
		m.Origin = &protocol.Origin{Kind: protocol.OriginTurnInput, InputID: "i"}
	}
	return m
}

// callsTools reports whether the machine finds tool calls in a reply.
func callsTools(r provider.Reply) bool {
	r = wellFormed(r)
	msg := r.Message()
	return len(msg.Calls()) > 0
}
