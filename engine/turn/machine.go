// Package turn is the pure state machine of a turn. Next returns the effect to perform, and Deliver takes its answer. In between
// the machine does no IO, reads no clock and uses no randomness, so it can be replayed from a journal and fuzzed. A Driver
// decides what a model reply means. Drivers are stateless: their state is stored as bytes in the machine. A Machine is not safe
// for concurrent use; the engine's run of the turn owns it.
//
// Everything that enters the machine is converted to what reading back its JSON would give. So a machine that is answered from a
// journal asks for byte-identical effects.
package turn

import (
	"encoding/json"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// DefaultNoProgress is the number of unsuccessful attempts in a row after which a turn ends, unless its budget says
// otherwise. Without such a limit, one turn once made 1,223 model calls.
const DefaultNoProgress = 12

// Config is the start of a turn.
type Config struct {
	Input      []protocol.Message         `json:"input"`               // first messages of the turn
	Transient  []protocol.Message         `json:"transient,omitempty"` // sent with the first model call, never stored
	Budget     protocol.Budget            `json:"budget"`
	Generation protocol.GenerationOptions `json:"generation"`
	Options    *protocol.TurnOptions      `json:"options,omitempty"` // for the driver
	Schema     json.RawMessage            `json:"schema,omitempty"`  // of the value that the turn ends with; nil: it ends with text
}

// state is everything that a machine knows, and its JSON is complete. As long as there is no Outcome there is an Active
// effect.
type state struct {
	Budget     protocol.Budget            `json:"budget"`
	Generation protocol.GenerationOptions `json:"generation"`
	Options    *protocol.TurnOptions      `json:"options,omitempty"`
	LastEffect uint64                     `json:"lastEffect"`       // number of the newest waiting effect
	Active     *Effect                    `json:"active,omitempty"` // the effect that waits for an answer
	Outbox     []Effect                   `json:"outbox,omitempty"` // effects without an answer that Next has not returned
	Iteration  int                        `json:"iteration"`
	Asked      int                        `json:"asked,omitempty"`      // iteration of the newest model call
	Grace      bool                       `json:"grace,omitempty"`      // the turn is in its extra iteration
	NoProgress int                        `json:"noProgress,omitempty"` // unsuccessful attempts in a row
	Messages   []protocol.Message         `json:"messages"`
	Transient  []protocol.Message         `json:"transient,omitempty"`
	Env        Environment                `json:"env"`
	Driver     json.RawMessage            `json:"driver,omitempty"`
	After      *Remembered                `json:"after,omitempty"` // what follows the active checkpoint
	Usage      protocol.Usage             `json:"usage"`
	Calls      []protocol.CallRecord      `json:"calls,omitempty"`
	ToolCalls  []protocol.ToolCallRecord  `json:"toolCalls,omitempty"`
	Issues     []protocol.Issue           `json:"issues,omitempty"`
	HadCode    bool                       `json:"hadCode,omitempty"`
	Fallback   string                     `json:"fallback,omitempty"` // the model that the rest of the turn asks; "": the session's
	Schema     json.RawMessage            `json:"schema,omitempty"`   // of the value that the turn ends with; nil: it ends with text
	Value      json.RawMessage            `json:"value,omitempty"`    // of the newest reply without tool calls; nil: there is none
	Repairs    int                        `json:"repairs,omitempty"`  // model calls that invalid replies have caused
	Outcome    *protocol.TurnOutcome      `json:"outcome,omitempty"`
}

// Machine runs one turn. The caller loops: Next, perform the effect, Deliver, until Finished.
type Machine struct {
	driver   Driver
	s        state
	limiting bool // the driver's Limit is running; false between calls
}

// New returns a machine at the beginning of a turn.
func New(driver Driver, cfg Config) *Machine {
	m := &Machine{driver: driver, s: state{Iteration: 1}}
	cfg, err := exact(cfg)
	if err != nil {
		m.violation("malformed_input", err.Error())
		return m
	}
	m.s.Budget, m.s.Generation, m.s.Options, m.s.Transient, m.s.Schema = cfg.Budget, cfg.Generation, cfg.Options, cfg.Transient, cfg.Schema
	for _, msg := range cfg.Input {
		if !m.hasCause(msg) {
			m.s.Messages = append(m.s.Messages, msg)
		}
	}
	m.prepare()
	return m
}

// Next returns the effect to perform. An effect without an answer is returned once, a waiting one until its answer is
// delivered. After EffectDone there is none. The effect is shared and must not be modified.
func (m *Machine) Next() (Effect, bool) {
	if len(m.s.Outbox) > 0 {
		e := m.s.Outbox[0]
		if m.s.Outbox = m.s.Outbox[1:]; len(m.s.Outbox) == 0 {
			m.s.Outbox = nil
		}
		return e, true
	}
	if m.s.Active != nil {
		return *m.s.Active, true
	}
	return Effect{}, false
}

// Deliver passes in the answer to the waiting effect id. An answer to any other effect is late and ignored. An answer
// without the field of the effect's kind fails the turn.
func (m *Machine) Deliver(id uint64, r Response) {
	active := m.s.Active
	if active == nil || active.ID != id {
		return
	}
	r, err := m.received(active, r)
	if err != nil {
		m.violation("wrong_answer", fmt.Sprintf("the answer to effect %d (%s): %v", id, active.Kind, err))
		return
	}
	m.s.Active = nil
	switch active.Kind {
	case EffectSync:
		m.synced(r.Sync)
	case EffectModel:
		m.modelReplied(active.Model, r.Model)
	case EffectTools:
		m.toolsReturned(active.Tools.Calls, r.Tools)
	case EffectCode:
		m.codeReturned(r.Code)
	case EffectCheckpoint:
		m.checkpointPassed(active.Checkpoint.Kind, r.Checkpoint)
	}
	if m.s.Active == nil && !m.Finished() {
		m.violation("driver_stalled", "the driver returned no action after "+string(active.Kind))
	}
}

// Finished reports whether the turn has its outcome.
func (m *Machine) Finished() bool { return m.s.Outcome != nil }

// Messages returns the messages of the turn so far. The n-th becomes the n-th node of the turn. The slice is shared and
// must not be modified.
func (m *Machine) Messages() []protocol.Message { return slices.Clip(m.s.Messages) }

// Iteration returns the number of the current iteration, from 1. Each makes at most one model call.
func (m *Machine) Iteration() int { return m.s.Iteration }

// Result returns the state of the turn; the outcome is set once the machine is finished.
func (m *Machine) Result() Result {
	return Result{
		Outcome: m.s.Outcome, Messages: slices.Clip(m.s.Messages), Usage: m.s.Usage, Calls: slices.Clip(m.s.Calls),
		ToolCalls: slices.Clip(m.s.ToolCalls), Issues: slices.Clip(m.s.Issues), HadCode: m.s.HadCode,
	}
}

// view returns the state for the driver. Slices are shared.
func (m *Machine) view() View {
	return View{
		Iteration: m.s.Iteration, Grace: m.s.Grace, Messages: slices.Clip(m.s.Messages), Tools: slices.Clip(m.s.Env.Tools),
		Code: m.s.Env.Code, State: m.s.Driver, Options: m.s.Options, Schema: m.s.Schema,
	}
}

// wait makes e the effect that the machine waits for. There is only one at a time: the driver would never get the
// answer to the first of two.
func (m *Machine) wait(e Effect) {
	if m.s.Active != nil {
		m.violation("driver_conflict", fmt.Sprintf("the driver asked for %s while the turn waits for %s", e.Kind, m.s.Active.Kind))
		return
	}
	m.s.LastEffect++
	e.ID, e.Iteration = m.s.LastEffect, m.s.Iteration
	m.s.Active = &e
}

// emit queues an effect without an answer.
func (m *Machine) emit(e Effect) {
	e.Iteration = m.s.Iteration
	m.s.Outbox = append(m.s.Outbox, e)
}

// prepare begins an iteration by asking for the environment. It is fetched once per iteration, so a tool that was
// enabled between two model calls is in the second one, and nothing changes within an iteration.
func (m *Machine) prepare() {
	m.wait(Effect{Kind: EffectSync, Sync: &Sync{Recompute: m.s.Iteration > 1}})
}

// synced continues an iteration with its environment.
func (m *Machine) synced(env *Environment) {
	m.s.Env = *env
	m.apply(m.driver.Prepare(m.view()))
}

// appendMessage adds a message to the turn. entered is the checkpoint at which it came from outside; "" if it did not.
func (m *Machine) appendMessage(msg protocol.Message, entered protocol.Boundary) {
	msg, err := exact(msg)
	if err != nil {
		m.violation("malformed_message", err.Error())
		return
	}
	m.s.Messages = append(m.s.Messages, msg)
	m.emit(Effect{Kind: EffectProgress, Progress: &Progress{Ordinal: len(m.s.Messages) - 1, Message: msg, Entered: entered}})
}

// hasCause reports whether the turn already has a message with the same cause.
func (m *Machine) hasCause(msg protocol.Message) bool {
	c := msg.Cause()
	return c != nil && slices.ContainsFunc(m.s.Messages, func(known protocol.Message) bool {
		return known.Cause() != nil && known.Cause().ID == c.ID
	})
}

// issue records an issue and emits it.
func (m *Machine) issue(i protocol.Issue) {
	i, _ = exact(i) // an issue is text: this cannot fail
	m.s.Issues = append(m.s.Issues, i)
	m.emit(Effect{Kind: EffectLog, Log: &i})
}

// violation fails the turn because its driver or interpreter violated the contract.
func (m *Machine) violation(code, message string) {
	m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Kind: "runtime", Code: code, Message: message})
}
