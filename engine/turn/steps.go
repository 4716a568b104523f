package turn

import (
	"encoding/json"
	"fmt"
	"slices"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// startModel asks for a model reply, at most once per iteration.
func (m *Machine) startModel(choice provider.ToolChoice, output provider.OutputSpec) {
	if m.s.Schema != nil {
		output = provider.OutputSpec{JSON: true, Schema: m.s.Schema}
	}
	output, err := exact(output)
	if err != nil {
		m.violation("malformed_request", err.Error())
		return
	}
	m.askModel(ModelCall{Tools: slices.Clip(m.s.Env.Tools), Choice: choice, Output: output, Transient: slices.Clip(m.s.Transient)})
}

// startCoding asks for a reply with prose or a code cell, at most once per iteration.
func (m *Machine) startCoding(language string, tail []protocol.Message) {
	tail, err := exact(tail)
	if err != nil {
		m.violation("malformed_request", err.Error())
		return
	}
	m.askModel(ModelCall{Choice: provider.ToolsNone, Language: language, Transient: slices.Concat(m.s.Transient, tail)})
}

// askModel completes a model call with what all calls of the turn have, and waits for the reply.
func (m *Machine) askModel(call ModelCall) {
	if m.s.Asked == m.s.Iteration {
		// The turn budget counts iterations: a second call in one would not be counted.
		m.violation("driver_conflict", fmt.Sprintf("the driver asked for a second model call in iteration %d", m.s.Iteration))
		return
	}
	m.s.Asked = m.s.Iteration
	call.System, call.Generation, call.Messages, call.Fallback = m.s.Env.System, m.s.Generation, slices.Clip(m.s.Messages), m.s.Fallback
	m.wait(Effect{Kind: EffectModel, Model: &call})
}

// startTools asks for a batch of tool calls.
func (m *Machine) startTools(calls []protocol.ToolCall) {
	calls, err := exact(calls)
	if err != nil {
		m.violation("malformed_call", err.Error())
		return
	}
	m.wait(Effect{Kind: EffectTools, Tools: &ToolBatch{Calls: calls}})
}

// startCode asks to run a code cell.
func (m *Machine) startCode(cell Cell) {
	m.s.HadCode = true
	cell, err := exact(cell)
	if err != nil {
		m.violation("malformed_cell", err.Error())
		return
	}
	m.wait(Effect{Kind: EffectCode, Code: &cell})
}

// checkpoint asks for inputs and remembers how to continue if there are none.
func (m *Machine) checkpoint(kind protocol.Boundary, finish *protocol.TurnOutcome) {
	after, err := exact(Remembered{Finish: finish})
	if err != nil {
		m.violation("malformed_outcome", err.Error())
		return
	}
	m.s.After = &after
	m.wait(Effect{Kind: EffectCheckpoint, Checkpoint: &Checkpoint{Kind: kind}})
}

// setState replaces the driver's state.
func (m *Machine) setState(s json.RawMessage) {
	s, err := exact(s)
	if err != nil {
		m.violation("malformed_state", err.Error())
		return
	}
	m.s.Driver = s
}

// tell emits an event of the driver.
func (m *Machine) tell(news protocol.PluginNode) {
	news, err := exact(news)
	if err != nil {
		m.violation("malformed_news", err.Error())
		return
	}
	m.emit(Effect{Kind: EffectEmit, Emit: &news})
}

// checkpointPassed adds what was delivered. Only messages that the model will see keep the turn from ending. If a
// plugin aborts the turn, its inputs are still added first, because lashd has reported to their senders that this turn uses them.
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

// takeIn adds the messages of a delivery and reports whether the model will see any.
func (m *Machine) takeIn(at protocol.Boundary, d *Delivery) (entered bool) {
	for _, msg := range d.Inputs {
		if !m.hasCause(msg) {
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

// mayEnter reports whether a plugin's message has a role that plugins may use. If not, it records an issue.
func (m *Machine) mayEnter(msg protocol.Message) bool {
	if msg.Role == protocol.RoleUser || msg.Role == protocol.RoleSystem {
		return true
	}
	m.issue(protocol.Issue{Kind: "plugin", Code: "message_role_dropped",
		Message: "a plugin message of role " + string(msg.Role) + " was dropped: only user and system may enter a turn"})
	return false
}

// advance continues with the next iteration within the budget. A negative budget is unlimited.
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
