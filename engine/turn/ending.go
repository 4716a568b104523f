package turn

import (
	"slices"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// limit lets the driver end a turn that has used up its budget. If it does not, the machine does.
func (m *Machine) limit() {
	m.limiting = true
	m.apply(m.driver.Limit(m.view()))
	m.limiting = false
	if m.s.Active == nil && !m.Finished() {
		m.outOfTurns()
	}
}

func (m *Machine) graceFinal() {
	if m.s.Grace {
		m.outOfTurns()
		return
	}
	m.s.Grace = true
	m.s.Iteration++
	m.prepare()
}

func (m *Machine) outOfTurns() {
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: "the turn budget is used up"})
}

func (m *Machine) finish(outcome protocol.TurnOutcome) {
	exactly, err := exact(outcome)
	if err != nil {
		m.broken("malformed_outcome", err.Error())
		return
	}
	m.closeCalls(exactly.Kind)
	m.s.Active, m.s.After, m.s.Outcome = nil, nil, &exactly
	m.emit(Effect{Kind: EffectDone, Done: &exactly})
}

// closeCalls gives every call of the turn that lacks one a result, whatever ended the turn, so that the conversation
// can go on from there.
func (m *Machine) closeCalls(end protocol.OutcomeKind) {
	msg := protocol.Message{Role: protocol.RoleUser}
	for _, call := range openCalls(m.s.Messages) {
		msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolResult, Result: m.lastResult(call, end)})
	}
	if len(msg.Parts) > 0 {
		m.appendMessage(msg, "")
	}
}

// lastResult is what is known of a call when the turn ends. A batch that was handed out when the turn failed may have
// run: nobody knows. Who cancels a turn delivers the results of its calls first, so what is left then did not run.
func (m *Machine) lastResult(call protocol.ToolCall, end protocol.OutcomeKind) *protocol.ToolResult {
	known := slices.IndexFunc(m.s.ToolCalls, func(r protocol.ToolCallRecord) bool { return r.CallID == call.CallID })
	if known < 0 {
		out := protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn ended before the call was made"}
		if m.s.Active != nil && m.s.Active.Kind == EffectTools && end != protocol.OutcomeCancelled {
			out = protocol.ToolOutput{Status: protocol.OutputUnknown, Text: "the turn failed before the result of the call was known"}
		}
		known = len(m.s.ToolCalls)
		m.s.ToolCalls = append(m.s.ToolCalls, protocol.ToolCallRecord{CallID: call.CallID, Name: call.Name, Args: call.Args, Output: out})
	}
	r := m.s.ToolCalls[known]
	return &protocol.ToolResult{CallID: r.CallID, Name: r.Name, Output: r.Output, DurationMs: r.DurationMs, Order: r.Order}
}

// openCalls are the calls without a result, in order.
func openCalls(msgs []protocol.Message) []protocol.ToolCall {
	var open []protocol.ToolCall
	for _, msg := range msgs {
		for _, p := range msg.Parts {
			switch {
			case p.Kind == protocol.PartToolCall && p.Call != nil:
				open = append(open, *p.Call)
			case p.Kind == protocol.PartToolResult && p.Result != nil:
				i := slices.IndexFunc(open, func(c protocol.ToolCall) bool { return c.CallID == p.Result.CallID })
				if i >= 0 {
					open = slices.Delete(open, i, i+1)
				}
			}
		}
	}
	return open
}

// Cancel ends the turn, except where a model call is under way: its answer says so itself, see ModelReply. The results
// of a batch that was begun must have been delivered, with cancelled ones where calls did not end. What was received
// of a reply that is not delivered can be given as partial.
func (m *Machine) Cancel(evidence protocol.CancelEvidence, partial *provider.Reply) {
	if m.Finished() {
		return
	}
	if partial != nil {
		reply := wellFormed(*partial)
		partial = &reply
		if err := m.addUsage(partial.Usage); err != nil {
			m.issue(overflow(err))
		}
	}
	m.stop(evidence, partial)
}

func (m *Machine) stop(evidence protocol.CancelEvidence, partial *provider.Reply) {
	if partial != nil {
		m.keepPartial(partial)
	}
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &evidence})
}

// Switch ends the turn in favour of another frame.
func (m *Machine) Switch(frame *protocol.FrameSwitch) {
	if !m.Finished() {
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeFrameSwitch, Frame: frame})
	}
}

// Fail ends the turn for a reason outside of it.
func (m *Machine) Fail(kind protocol.OutcomeKind, issue protocol.Issue) {
	if m.Finished() {
		return
	}
	m.issue(issue)
	m.finish(protocol.TurnOutcome{Kind: kind, Text: issue.Message})
}
