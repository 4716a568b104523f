// Package turn is the pure machine behind a turn. Next gives the effect to perform, Deliver takes its answer; between
// the two the machine does no IO, reads no clock and draws no randomness, so it can be replayed from a journal and fuzzed. What a model reply means is decided by a Driver, which is stateless: its state is bytes
// inside the machine. A Machine is not safe for concurrent use.
//
// Everything that enters the machine is taken in as its JSON would be read back. So a machine that is answered from a journal
// asks for effects that are the same to the byte as those of one that never stopped.
package turn

import (
	"encoding/json"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// DefaultNoProgress is how many attempts in a row may lack an error-free execution, unless the budget says otherwise.
// It was set upstream after one turn made 1,223 model calls.
const DefaultNoProgress = 12

// Config is what a turn begins with.
type Config struct {
	Input      []protocol.Message         `json:"input"`               // the first messages of the turn
	Transient  []protocol.Message         `json:"transient,omitempty"` // shown in the first model call, never stored
	Budget     protocol.Budget            `json:"budget"`
	Generation protocol.GenerationOptions `json:"generation"`
	Options    *protocol.TurnOptions      `json:"options,omitempty"` // for the driver
}

// state is everything a machine knows; its JSON is all of it. Until there is an Outcome there is an Active effect.
type state struct {
	Budget     protocol.Budget            `json:"budget"`
	Generation protocol.GenerationOptions `json:"generation"`
	Options    *protocol.TurnOptions      `json:"options,omitempty"`
	LastEffect uint64                     `json:"lastEffect"`
	Active     *Effect                    `json:"active,omitempty"`
	Outbox     []Effect                   `json:"outbox,omitempty"`
	Iteration  int                        `json:"iteration"`
	Asked      int                        `json:"asked,omitempty"` // the iteration of the newest model call
	Grace      bool                       `json:"grace,omitempty"`
	NoProgress int                        `json:"noProgress,omitempty"`
	Messages   []protocol.Message         `json:"messages"`
	Transient  []protocol.Message         `json:"transient,omitempty"`
	Env        Environment                `json:"env"`
	Driver     json.RawMessage            `json:"driver,omitempty"`
	After      *Remembered                `json:"after,omitempty"`
	Usage      protocol.Usage             `json:"usage"`
	Calls      []protocol.CallRecord      `json:"calls,omitempty"`
	ToolCalls  []protocol.ToolCallRecord  `json:"toolCalls,omitempty"`
	Issues     []protocol.Issue           `json:"issues,omitempty"`
	HadCode    bool                       `json:"hadCode,omitempty"`
	Outcome    *protocol.TurnOutcome      `json:"outcome,omitempty"`
}

// Machine runs one turn.
type Machine struct {
	driver   Driver
	s        state
	limiting bool // the driver is being asked what to do at the limit; never true between two calls
}

// New is a machine at the beginning of a turn.
func New(driver Driver, cfg Config) *Machine {
	m := &Machine{driver: driver, s: state{Iteration: 1}}
	cfg, err := exact(cfg)
	if err != nil {
		m.broken("malformed_input", err.Error())
		return m
	}
	m.s.Budget, m.s.Generation, m.s.Options, m.s.Transient = cfg.Budget, cfg.Generation, cfg.Options, cfg.Transient
	for _, msg := range cfg.Input {
		if !m.told(msg) {
			m.s.Messages = append(m.s.Messages, msg)
		}
	}
	m.prepare()
	return m
}

// Next is the effect to perform now. Effects that nobody answers are handed out once; one that waits is handed out
// until its answer was delivered. After Done there is none. The caller does not change what an effect refers to.
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

// Deliver takes the answer to the waiting effect id. An answer to any other effect is ignored: it came too late. One
// that lacks the field of the effect's kind fails the turn.
func (m *Machine) Deliver(id uint64, r Response) {
	active := m.s.Active
	if active == nil || active.ID != id {
		return
	}
	r, err := m.received(active, r)
	if err != nil {
		m.broken("wrong_answer", fmt.Sprintf("the answer to effect %d (%s): %v", id, active.Kind, err))
		return
	}
	m.s.Active = nil
	switch active.Kind {
	case EffectSync:
		m.synced(r.Sync)
	case EffectModel:
		m.modelReplied(r.Model)
	case EffectTools:
		m.toolsReturned(active.Tools.Calls, r.Tools)
	case EffectCode:
		m.codeReturned(r.Code)
	case EffectCheckpoint:
		m.checkpointPassed(active.Checkpoint.Kind, r.Checkpoint)
	}
	if m.s.Active == nil && !m.Finished() {
		m.broken("driver_stalled", "the driver asked for nothing after "+string(active.Kind))
	}
}

// Finished tells whether the turn has its outcome.
func (m *Machine) Finished() bool { return m.s.Outcome != nil }

// Messages are the turn's messages so far; the n-th becomes the turn's n-th node. The caller does not change them.
func (m *Machine) Messages() []protocol.Message { return slices.Clip(m.s.Messages) }

// Iteration counts model calls, from 1.
func (m *Machine) Iteration() int { return m.s.Iteration }

// Result is what the turn came to; its outcome is set once the machine has finished.
func (m *Machine) Result() Result {
	return Result{
		Outcome: m.s.Outcome, Messages: slices.Clip(m.s.Messages), Usage: m.s.Usage, Calls: slices.Clip(m.s.Calls),
		ToolCalls: slices.Clip(m.s.ToolCalls), Issues: slices.Clip(m.s.Issues), HadCode: m.s.HadCode,
	}
}

func (m *Machine) view() View {
	return View{
		Iteration: m.s.Iteration, Grace: m.s.Grace, Messages: slices.Clip(m.s.Messages), Tools: slices.Clip(m.s.Env.Tools),
		State: m.s.Driver, Options: m.s.Options,
	}
}

// wait makes e the effect that the machine waits for. There is one at a time: a driver that asks for a second one
// would never see the answer to the first.
func (m *Machine) wait(e Effect) {
	if m.s.Active != nil {
		m.broken("driver_conflict", fmt.Sprintf("the driver asked for %s while it waits for %s", e.Kind, m.s.Active.Kind))
		return
	}
	m.s.LastEffect++
	e.ID, e.Iteration = m.s.LastEffect, m.s.Iteration
	m.s.Active = &e
}

func (m *Machine) emit(e Effect) {
	e.Iteration = m.s.Iteration
	m.s.Outbox = append(m.s.Outbox, e)
}

// prepare begins an iteration: the environment is synced once in each, so that a tool enabled between two model calls
// is seen by the second and nothing changes inside one.
func (m *Machine) prepare() {
	m.wait(Effect{Kind: EffectSync, Sync: &Sync{Recompute: m.s.Iteration > 1}})
}

func (m *Machine) synced(env *Environment) {
	m.s.Env = *env
	m.apply(m.driver.Prepare(m.view()))
}

// appendMessage adds a message to the turn; entered names the checkpoint at which it came in, if it did.
func (m *Machine) appendMessage(msg protocol.Message, entered protocol.Boundary) {
	msg, err := exact(msg)
	if err != nil {
		m.broken("malformed_message", err.Error())
		return
	}
	m.s.Messages = append(m.s.Messages, msg)
	m.emit(Effect{Kind: EffectProgress, Progress: &Progress{Ordinal: len(m.s.Messages) - 1, Message: msg, Entered: entered}})
}

// told tells whether a message is about a cause that the turn has been told of.
func (m *Machine) told(msg protocol.Message) bool {
	c := msg.Cause()
	return c != nil && slices.ContainsFunc(m.s.Messages, func(known protocol.Message) bool {
		return known.Cause() != nil && known.Cause().ID == c.ID
	})
}

func (m *Machine) issue(i protocol.Issue) {
	i, _ = exact(i) // an issue is text: it cannot fail
	m.s.Issues = append(m.s.Issues, i)
	m.emit(Effect{Kind: EffectLog, Log: &i})
}

// broken ends the turn because its driver or interpreter did not keep to the contract.
func (m *Machine) broken(code, message string) {
	m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Kind: "runtime", Code: code, Message: message})
}
