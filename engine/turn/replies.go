package turn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func (m *Machine) modelReplied(r *ModelReply) {
	m.s.Transient = nil
	m.s.Calls = append(m.s.Calls, r.Record)
	reply := &r.Reply
	switch err := m.addUsage(reply.Usage); {
	case r.Cancel != nil:
		m.stop(*r.Cancel, reply)
	case err != nil:
		m.modelFailed(reply, protocol.OutcomeRuntimeError, overflow(err))
	case r.Error != nil:
		m.modelFailed(reply, protocol.OutcomeProviderError, *r.Error)
	case reply.Stop == protocol.StopOutputLimit && !m.driver.HandlesOutputLimit():
		m.keepPartial(reply)
		m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeIncomplete, Text: m.prose(reply)})
	case cutOff(reply.Stop):
		m.modelFailed(reply, protocol.OutcomeProviderError, protocol.Issue{
			Kind: "provider", Code: string(reply.Stop), Message: "the model stopped: " + string(reply.Stop), Stop: reply.Stop,
		})
	default:
		m.apply(m.driver.Reply(m.view(), *reply))
	}
}

// cutOff tells whether a reply that came without an error is none to go on from.
func cutOff(stop protocol.StopReason) bool {
	switch stop {
	case protocol.StopContextLimit, protocol.StopContentFilter, protocol.StopError, protocol.StopCancelled:
		return true
	}
	return false
}

func overflow(err error) protocol.Issue {
	return protocol.Issue{Kind: "runtime", Code: "token_usage_overflow", Message: err.Error()}
}

func (m *Machine) modelFailed(reply *provider.Reply, kind protocol.OutcomeKind, issue protocol.Issue) {
	m.issue(issue)
	m.keepPartial(reply)
	m.finish(protocol.TurnOutcome{Kind: kind, Text: issue.Message})
}

// keepPartial stores what was said in a reply that was cut off. Its tool calls are dropped: none was dispatched, and a
// call without a result would make the conversation unusable. Reasoning stays in front of the prose it led to, so that
// the parts keep the ids under which they were shown.
func (m *Machine) keepPartial(reply *provider.Reply) {
	var parts []protocol.Part
	said := false
	for _, p := range reply.Parts {
		switch p.Kind {
		case protocol.PartProse, protocol.PartCommentary:
			said = said || strings.TrimSpace(p.Text) != ""
			parts = append(parts, p)
		case protocol.PartReasoning:
			parts = append(parts, p)
		}
	}
	if said {
		m.appendMessage(protocol.Message{Role: protocol.RoleAssistant, Parts: parts}, "")
	}
}

func (m *Machine) prose(reply *provider.Reply) string {
	msg := reply.Message()
	return m.driver.Visible(msg.Answer())
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

func (m *Machine) toolsReturned(calls []protocol.ToolCall, replies []ToolReply) {
	good := false
	for i, r := range replies {
		good = good || r.good()
		args := r.Args
		if args == nil {
			args = calls[i].Args
		}
		m.s.ToolCalls = append(m.s.ToolCalls, protocol.ToolCallRecord{
			CallID: r.CallID, Name: r.Name, Args: args, Output: r.Output, DurationMs: r.DurationMs, Order: r.Order,
		})
		m.s.ToolCalls = append(m.s.ToolCalls, r.Calls...)
	}
	m.apply(m.driver.Results(m.view(), asShown(replies)))
	m.progress(good)
}

// asShown are replies with the outputs that enter the conversation.
func asShown(replies []ToolReply) []ToolReply {
	shown := slices.Clone(replies)
	for i := range shown {
		shown[i].Output, shown[i].Shown = replies[i].Seen(), nil
	}
	return shown
}

func (m *Machine) codeReturned(r *CellReply) {
	m.s.ToolCalls = append(m.s.ToolCalls, r.Calls...)
	m.apply(m.driver.Cell(m.view(), *r))
	m.progress(r.Error == "")
}

// progress keeps the no-progress count and ends the turn when it has used up its budget.
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
	text := fmt.Sprintf("stopped after %d attempts in a row without one that succeeded", m.s.NoProgress)
	m.issue(protocol.Issue{Kind: "runtime", Code: "no_progress_budget", Message: text})
	m.finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: text})
}
