package turn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// modelReplied handles the answer to a model call. Only a reply that ended normally reaches the driver.
func (m *Machine) modelReplied(call *ModelCall, r *ModelReply) {
	m.s.Transient = nil
	m.s.Calls = append(m.s.Calls, r.Record)
	reply := &r.Reply
	switch err := m.addUsage(reply.Usage); {
	case r.Cancel != nil:
		m.stop(*r.Cancel, reply)
	case err != nil:
		m.modelFailed(reply, protocol.OutcomeRuntimeError, overflow(err))
	case r.Error != nil && r.Fallback != "" && m.s.Fallback == "":
		m.fallBack(call, r)
	case r.Error != nil:
		m.modelFailed(reply, protocol.OutcomeProviderError, *r.Error)
	case reply.Stop == protocol.StopOutputLimit && !m.driver.HandlesOutputLimit():
		m.keepPartial(reply)
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeIncomplete, Text: m.prose(reply)})
	case stoppedEarly(reply.Stop):
		m.modelFailed(reply, protocol.OutcomeProviderError, protocol.Issue{
			Kind: "provider", Code: string(reply.Stop), Message: "the model stopped: " + string(reply.Stop), Stop: reply.Stop,
		})
	case r.Problem != "":
		m.repair(reply, r.Problem)
	default:
		m.s.Value = r.Value
		m.apply(m.driver.Reply(m.view(), *reply))
	}
}

// fallBack makes a failed call again with another model, which also makes the later calls of the turn. People see a notice of it; the
// model does not, because notices of this kind are for display only. It happens once in a turn: a failure of the other model ends it.
func (m *Machine) fallBack(call *ModelCall, r *ModelReply) {
	m.s.Fallback = r.Fallback
	text := fmt.Sprintf("%s did not answer: %s. The rest of this turn uses %s.", r.Record.Model, strings.TrimSuffix(r.Error.Message, "."), r.Fallback)
	m.appendMessage(protocol.Message{Role: protocol.RoleSystem, Parts: []protocol.Part{{Kind: protocol.PartError, Text: text}}}, "")
	again := *call
	again.Messages, again.Fallback = slices.Clip(m.s.Messages), r.Fallback
	m.wait(Effect{Kind: EffectModel, Model: &again})
}

// stoppedEarly reports whether a reply stopped in a way that the turn cannot continue from.
func stoppedEarly(stop protocol.StopReason) bool {
	switch stop {
	case protocol.StopContextLimit, protocol.StopContentFilter, protocol.StopError, protocol.StopCancelled:
		return true
	}
	return false
}

// overflow returns the issue of token counts that exceed their range.
func overflow(err error) protocol.Issue {
	return protocol.Issue{Kind: "runtime", Code: "token_usage_overflow", Message: err.Error()}
}

// modelFailed keeps what was received and ends the turn.
func (m *Machine) modelFailed(reply *provider.Reply, kind protocol.OutcomeKind, issue protocol.Issue) {
	m.issue(issue)
	m.keepPartial(reply)
	m.finish(protocol.TurnOutcome{Kind: kind, Text: issue.Message})
}

// keepPartial stores the text and code of an incomplete reply. Its tool calls are dropped: they did not run, and calls without a
// result would make the conversation invalid. Reasoning stays in front of the prose it led to, so that parts keep the
// ids under which clients have seen them.
func (m *Machine) keepPartial(reply *provider.Reply) {
	var parts []protocol.Part
	said := false
	for _, p := range reply.Parts {
		switch p.Kind {
		case protocol.PartProse, protocol.PartCommentary:
			said = said || strings.TrimSpace(p.Text) != ""
			parts = append(parts, p)
		case protocol.PartCode:
			said = true
			parts = append(parts, p)
		case protocol.PartReasoning:
			parts = append(parts, p)
		}
	}
	if said {
		m.appendMessage(protocol.Message{Role: protocol.RoleAssistant, Parts: parts}, "")
	}
}

// prose returns the visible text of a reply.
func (m *Machine) prose(reply *provider.Reply) string {
	msg := reply.Message()
	return m.driver.Visible(msg.Answer())
}

// addUsage adds the tokens of a call. It fails on an overflow.
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

// toolsReturned records the results of a batch, passes them to the driver and counts progress.
func (m *Machine) toolsReturned(calls []protocol.ToolCall, replies []ToolReply) {
	good := false
	for i, r := range replies {
		good = good || r.succeeded()
		args := r.Args
		if args == nil {
			args = calls[i].Args
		}
		m.s.ToolCalls = append(m.s.ToolCalls, protocol.ToolCallRecord{
			CallID: r.CallID, Name: r.Name, Args: args, Output: r.Output, DurationMs: r.DurationMs, Order: r.Order,
		})
		m.s.ToolCalls = append(m.s.ToolCalls, r.Calls...)
	}
	m.apply(m.driver.Results(m.view(), shownOutputs(replies)))
	m.progress(good)
}

// shownOutputs returns the replies with the outputs that enter the conversation.
func shownOutputs(replies []ToolReply) []ToolReply {
	shown := slices.Clone(replies)
	for i := range shown {
		shown[i].Output, shown[i].Shown = replies[i].Seen(), nil
	}
	return shown
}

// codeReturned records the calls of a code cell and passes its result to the driver. A cell without an error is
// progress, unless the driver counts it as an unsuccessful attempt.
func (m *Machine) codeReturned(r *CellReply) {
	m.s.ToolCalls = append(m.s.ToolCalls, m.recordable(r.Calls)...)
	if r.Fatal != nil {
		m.Fail(protocol.OutcomeRuntimeError, *r.Fatal)
		return
	}
	before := m.s.NoProgress
	m.apply(m.driver.Cell(m.view(), *r))
	if m.s.NoProgress == before {
		m.progress(r.Error == "")
	}
}

// progress updates the count of unsuccessful attempts and ends the turn when it reaches the limit.
func (m *Machine) progress(good bool) {
	if m.Finished() {
		return
	}
	if good {
		m.s.NoProgress = 0
		return
	}
	m.s.NoProgress++
	if m.s.NoProgress < cmp.Or(m.s.Budget.NoProgress, DefaultNoProgress) {
		return
	}
	text := fmt.Sprintf("stopped after %d unsuccessful attempts in a row", m.s.NoProgress)
	m.issue(protocol.Issue{Kind: "runtime", Code: "no_progress_budget", Message: text})
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: text})
}
