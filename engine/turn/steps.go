package turn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func (m *Machine) startModel(choice provider.ToolChoice, output provider.OutputSpec) {
	if m.s.Asked == m.s.Iteration {
		// The turn budget counts iterations: a second call in one would not be counted.
		m.broken("driver_conflict", fmt.Sprintf("the driver asked for a second model call in iteration %d", m.s.Iteration))
		return
	}
	output, err := exact(output)
	if err != nil {
		m.broken("malformed_request", err.Error())
		return
	}
	m.s.Asked = m.s.Iteration
	m.wait(Effect{Kind: EffectModel, Model: &ModelCall{
		System: m.s.Env.System, Tools: slices.Clip(m.s.Env.Tools), Choice: choice, Output: output, Generation: m.s.Generation,
		Messages: slices.Clip(m.s.Messages), Transient: slices.Clip(m.s.Transient),
	}})
}

func (m *Machine) startTools(calls []protocol.ToolCall) {
	calls, err := exact(calls)
	if err != nil {
		m.broken("malformed_call", err.Error())
		return
	}
	m.wait(Effect{Kind: EffectTools, Tools: &ToolBatch{Calls: calls}})
}

func (m *Machine) startCode(cell Cell) {
	m.s.HadCode = true
	cell, _ = exact(cell) // it is text: it cannot fail
	m.wait(Effect{Kind: EffectCode, Code: &cell})
}

func (m *Machine) checkpoint(kind protocol.Boundary, finish *protocol.TurnOutcome) {
	after, err := exact(Remembered{Finish: finish})
	if err != nil {
		m.broken("malformed_outcome", err.Error())
		return
	}
	m.s.After = &after
	m.wait(Effect{Kind: EffectCheckpoint, Checkpoint: &Checkpoint{Kind: kind}})
}

func (m *Machine) setState(s json.RawMessage) {
	s, err := exact(s)
	if err != nil {
		m.broken("malformed_state", err.Error())
		return
	}
	m.s.Driver = s
}

func (m *Machine) tell(news protocol.PluginNode) {
	news, err := exact(news)
	if err != nil {
		m.broken("malformed_news", err.Error())
		return
	}
	m.emit(Effect{Kind: EffectEmit, Emit: &news})
}

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

// checkpointPassed takes in what was delivered. Only what the model will see keeps the turn from ending. Inputs that a
// plugin's abort comes with are taken in first: their sender was told that this turn has them.
func (m *Machine) checkpointPassed(at protocol.Boundary, d *Delivery) {
	after := m.s.After
	m.s.After = nil
	entered := m.takeIn(at, d)
	switch {
	case d.Abort != nil:
		m.Fail(protocol.OutcomePluginAbort, *d.Abort)
	case !entered && after.Finish != nil:
		m.finish(*after.Finish)
	default:
		m.advance()
	}
}

func (m *Machine) takeIn(at protocol.Boundary, d *Delivery) (entered bool) {
	for _, msg := range d.Inputs {
		if !m.told(msg) {
			m.appendMessage(msg, at)
			entered = true
		}
	}
	for _, msg := range d.Messages {
		if m.mayEnter(msg) {
			m.appendMessage(msg, at)
			entered = true
		}
	}
	for _, msg := range d.Transient {
		if m.mayEnter(msg) {
			m.s.Transient = append(m.s.Transient, msg)
			entered = true
		}
	}
	return entered
}

// mayEnter tells whether a plugin's message is of a role that plugins may speak in.
func (m *Machine) mayEnter(msg protocol.Message) bool {
	if msg.Role == protocol.RoleUser || msg.Role == protocol.RoleSystem {
		return true
	}
	m.issue(protocol.Issue{Kind: "plugin", Code: "message_role_dropped",
		Message: "a plugin message of role " + string(msg.Role) + " was dropped: only user and system may enter a turn"})
	return false
}

func (m *Machine) advance() {
	limit := m.s.Budget.Iterations
	switch {
	case m.s.Grace, m.limiting:
		m.outOfTurns()
	case limit >= 0 && m.s.Iteration >= limit:
		m.limit()
	default:
		m.s.Iteration++
		m.prepare()
	}
}

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
