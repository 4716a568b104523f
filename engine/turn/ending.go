package turn

import (
	"slices"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// limit lets the driver react to the end of the iteration budget. If it neither ends the turn nor continues, the
// machine ends it.
func (m *Machine) limit() {
	m.limiting = true
	m.apply(m.driver.Limit(m.view()))
	m.limiting = false
	if m.s.Active == nil && !m.Finished() {
		m.outOfTurns()
	}
}

// graceFinal starts the one iteration beyond the budget.
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

// finish sets the outcome, gives open calls a result and emits the final effect.
func (m *Machine) finish(outcome protocol.TurnOutcome) {
	outcome = m.withValue(outcome)
	exactly, err := exact(outcome)
	if err != nil {
		m.violation("malformed_outcome", err.Error())
		return
	}
	m.closeCalls(exactly.Kind)
	m.closeCell()
	m.s.Active, m.s.After, m.s.Outcome = nil, nil, &exactly
	m.emit(Effect{Kind: EffectDone, Done: &exactly})
}

// closeCalls adds a result for every call that has none, so that the conversation stays valid however the turn ended.
func (m *Machine) closeCalls(end protocol.OutcomeKind) {
	msg := protocol.Message{Role: protocol.RoleUser}
	for _, call := range openCalls(m.s.Messages) {
		msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolResult, Result: m.lastResult(call, end)})
	}
	if len(msg.Parts) > 0 {
		m.appendMessage(msg, "")
	}
}

// closeCell adds an observation for the code cell that is still running or has not started, so that the next turn does not
// take it for one that ran to its end.
func (m *Machine) closeCell() {
	text := "The turn ended while the code ran. It is unknown how far the code ran."
	if m.s.Active == nil || m.s.Active.Kind != EffectCode {
		if !openCell(m.s.Messages) {
			return
		}
		text = "The turn ended before the code ran."
	}
	m.appendMessage(protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{
		{Kind: protocol.PartOutput, Text: text, Cell: &protocol.CodeResult{Error: text}},
	}}, "")
}

// lastResult returns the result of a call at the end of the turn. If the turn failed while the batch of the call was
// out, the call may have run: its status is unknown. On a cancel the results of the batch have been delivered before,
// so the remaining calls did not run.
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

// openCalls returns the calls without a result, in order.
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

// openCell reports whether the newest code cell has no output, although it is closed, so that it could have run.
func openCell(msgs []protocol.Message) bool {
	for _, msg := range slices.Backward(msgs) {
		for _, p := range slices.Backward(msg.Parts) {
			if p.Kind == protocol.PartCode {
				_, _, closed := protocol.SplitCell(p.Text)
				return closed
			}
			if p.Kind == protocol.PartOutput {
				return false
			}
		}
	}
	return false
}

// Cancel ends the turn. Do not use it during a model call: the reply itself says that it was cancelled, see ModelReply.
// Before calling it, deliver the results of a batch that was started, with cancelled ones for calls that did not end.
// partial is the part of an undelivered reply to keep; nil: none.
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

// stop keeps a partial reply and ends the turn as cancelled.
func (m *Machine) stop(evidence protocol.CancelEvidence, partial *provider.Reply) {
	if partial != nil {
		m.keepPartial(partial)
	}
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &evidence})
}

// Switch ends the turn in favor of another frame.
func (m *Machine) Switch(frame *protocol.FrameSwitch) {
	if !m.Finished() {
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeFrameSwitch, Frame: frame})
	}
}

// Fail ends the turn for an external reason and records the issue.
func (m *Machine) Fail(kind protocol.OutcomeKind, issue protocol.Issue) {
	if m.Finished() {
		return
	}
	m.issue(issue)
	m.finish(protocol.TurnOutcome{Kind: kind, Text: issue.Message})
}
