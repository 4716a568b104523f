package turn

import (
	"fmt"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func (m *Machine) startModel(choice provider.ToolChoice, output provider.OutputSpec) {
	m.wait(phaseModel, Effect{Kind: EffectModel, Model: &ModelCall{
		System: m.s.Env.System, Tools: m.s.Env.Tools, Choice: choice, Output: output,
		Generation: m.s.Config.Generation, Messages: m.s.Messages, Transient: m.s.Transient, Causes: m.s.Causes,
	}})
}

func (m *Machine) modelReplied(r *ModelReply) {
	m.s.Transient = nil
	m.s.Calls = append(m.s.Calls, r.Record)
	if err := m.addUsage(r.Reply.Usage); err != nil {
		m.issue(protocol.Issue{Kind: "runtime", Code: "token_usage_overflow", Message: err.Error()})
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: err.Error()})
		return
	}
	switch {
	case r.Error != nil:
		m.modelFailed(r)
	case r.Reply.Stop == protocol.StopOutputLimit && !m.driver.HandlesOutputLimit():
		m.keepPartial(r.Reply)
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeIncomplete, Text: m.prose(r.Reply)})
	case r.Reply.Stop == protocol.StopContextLimit, r.Reply.Stop == protocol.StopContentFilter, r.Reply.Stop == protocol.StopError:
		r.Error = stopIssue(r.Reply.Stop)
		m.modelFailed(r)
	default:
		m.apply(m.driver.Reply(m.view(), r.Reply))
	}
}

func stopIssue(stop protocol.StopReason) *protocol.Issue {
	return &protocol.Issue{Kind: "provider", Code: string(stop), Message: "the model stopped: " + string(stop), Stop: stop}
}

func (m *Machine) modelFailed(r *ModelReply) {
	m.issue(*r.Error)
	m.keepPartial(r.Reply)
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeProviderError, Text: r.Error.Message})
}

// keepPartial stores the prose of a reply that was cut off. Its tool calls are dropped: none was dispatched, and a
// call without a result would make the conversation unusable.
func (m *Machine) keepPartial(reply provider.Reply) {
	var parts []protocol.Part
	for _, p := range reply.Parts {
		if p.Kind == protocol.PartProse {
			parts = append(parts, p)
		}
	}
	if len(parts) > 0 {
		m.appendMessage(protocol.Message{Role: protocol.RoleAssistant, Parts: parts})
	}
}

func (m *Machine) prose(reply provider.Reply) string {
	msg := reply.Message()
	return m.driver.Visible(msg.Text(protocol.PartProse))
}

func (m *Machine) addUsage(u *protocol.Usage) error {
	if u == nil {
		return nil
	}
	sum, err := m.s.Usage.Add(*u)
	if err == nil {
		m.s.Usage = sum
	}
	return err
}

// toolsReturned puts the results into the order of the calls. A call without a result gets a failure, so that each
// call has exactly one.
func (m *Machine) toolsReturned(calls []protocol.ToolCall, replies []ToolReply) {
	ordered := make([]ToolReply, len(calls))
	good := false
	for i, call := range calls {
		ordered[i] = replyTo(call, replies)
		good = good || ordered[i].Output.Status == protocol.OutputSuccess
		m.s.ToolCalls = append(m.s.ToolCalls, protocol.ToolCallRecord{
			CallID: call.CallID, Name: call.Name, Args: firstArgs(ordered[i].Args, call.Args),
			Output: ordered[i].Output, DurationMs: ordered[i].DurationMs, Order: ordered[i].Order,
		})
	}
	m.apply(m.driver.Results(m.view(), ordered))
	m.progress(good)
}

func replyTo(call protocol.ToolCall, replies []ToolReply) ToolReply {
	for _, r := range replies {
		if r.CallID == call.CallID {
			r.Name = call.Name
			return r
		}
	}
	return ToolReply{CallID: call.CallID, Name: call.Name, Output: protocol.Fail(protocol.FailInternal, "batch_missing_result",
		"the batch came back without a result for this call", protocol.FromRuntime)}
}

func firstArgs(replaced, original []byte) []byte {
	if replaced != nil {
		return replaced
	}
	return original
}

func (m *Machine) codeReturned(r *CellReply) {
	m.apply(m.driver.Cell(m.view(), *r))
	m.progress(r.Error == "")
}

// progress keeps the no-progress count and ends the turn when it has used up its budget.
func (m *Machine) progress(good bool) {
	if m.s.Phase == phaseFinished {
		return
	}
	if good {
		m.s.NoProgress = 0
		return
	}
	m.s.NoProgress++
	limit := m.s.Config.Budget.NoProgress
	if limit == 0 {
		limit = DefaultNoProgress
	}
	if m.s.NoProgress < limit {
		return
	}
	text := fmt.Sprintf("stopped after %d attempts in a row without one that succeeded", m.s.NoProgress)
	m.issue(protocol.Issue{Kind: "runtime", Code: "no_progress_budget", Message: text})
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: text})
}

func (m *Machine) checkpointPassed(d *Delivery) {
	after := m.s.After
	m.s.After = nil
	if d != nil && d.Abort != nil {
		m.issue(*d.Abort)
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomePluginAbort, Text: d.Abort.Message})
		return
	}
	if !d.empty() {
		m.takeIn(d)
		m.advance()
		return
	}
	if after != nil && after.Finish != nil {
		m.finish(*after.Finish)
		return
	}
	m.advance()
}

func (m *Machine) takeIn(d *Delivery) {
	for _, msg := range d.Messages {
		if msg.Role != protocol.RoleUser && msg.Role != protocol.RoleSystem {
			m.issue(protocol.Issue{Kind: "plugin", Code: "message_role_dropped",
				Message: "a plugin message of role " + string(msg.Role) + " was dropped: only user and system may enter a turn"})
			continue
		}
		m.appendMessage(msg)
	}
	for _, msg := range d.Inputs {
		m.appendMessage(msg)
	}
	m.s.Transient = append(m.s.Transient, d.Transient...)
	for _, c := range d.Causes {
		m.addCause(c)
	}
}

func (m *Machine) addCause(c Cause) {
	for _, known := range m.s.Causes {
		if known.ID == c.ID {
			return
		}
	}
	m.s.Causes = append(m.s.Causes[:len(m.s.Causes):len(m.s.Causes)], c)
}

func (m *Machine) advance() {
	if m.s.Grace {
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: "the turn budget is used up"})
		return
	}
	if limit := m.s.Config.Budget.Iterations; limit >= 0 && m.s.Iteration >= limit {
		m.apply(m.driver.Limit(m.view()))
		return
	}
	m.s.Iteration++
	m.prepare()
}

func (m *Machine) graceFinal() {
	if m.s.Grace {
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: "the turn budget is used up"})
		return
	}
	m.s.Grace = true
	m.s.Iteration++
	m.prepare()
}

func (m *Machine) finish(outcome protocol.TurnOutcome) {
	m.s.Phase, m.s.Active, m.s.After = phaseFinished, nil, nil
	m.s.Outcome = &outcome
	m.emit(Effect{Kind: EffectDone, Done: &outcome})
}

// Cancel ends the turn. What was received of a model reply is kept; calls of a batch must have been delivered, with
// cancelled results where they did not end, so that each call has its result.
func (m *Machine) Cancel(evidence protocol.CancelEvidence, partial *provider.Reply) {
	if m.s.Phase == phaseFinished {
		return
	}
	if partial != nil {
		m.keepPartial(*partial)
	}
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &evidence})
}

// Fail ends the turn for a reason outside of it.
func (m *Machine) Fail(kind protocol.OutcomeKind, issue protocol.Issue) {
	if m.s.Phase == phaseFinished {
		return
	}
	m.issue(issue)
	m.finish(protocol.TurnOutcome{Kind: kind, Text: issue.Message})
}
