// Package turn is the pure machine behind a turn. Next gives the effect to perform, Deliver takes its answer; between
// the two the machine does no IO, reads no clock and draws no randomness, so it can be saved after any step, replayed
// from a journal and fuzzed. What a model reply means is decided by a Driver, which is stateless: its state is bytes
// inside the machine. A Machine is not safe for concurrent use.
package turn

import (
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// DefaultNoProgress is how many attempts in a row may lack an error-free execution, unless the budget says otherwise.
// It was set upstream after one turn made 1,223 model calls.
const DefaultNoProgress = 12

// Config is what a turn begins with.
type Config struct {
	Input      []protocol.Message         `json:"input"` // the first messages of the turn
	Budget     protocol.Budget            `json:"budget"`
	Generation protocol.GenerationOptions `json:"generation"`
}

type phase string

const (
	phasePrepare    phase = "prepare"
	phaseSync       phase = "sync"
	phaseModel      phase = "model"
	phaseTools      phase = "tools"
	phaseCode       phase = "code"
	phaseCheckpoint phase = "checkpoint"
	phaseFinished   phase = "finished"
)

// state is everything a machine knows; it is what Snapshot writes.
type state struct {
	Config     Config                    `json:"config"`
	Phase      phase                     `json:"phase"`
	LastEffect uint64                    `json:"lastEffect"`
	Active     *Effect                   `json:"active,omitempty"`
	Outbox     []Effect                  `json:"outbox,omitempty"`
	Iteration  int                       `json:"iteration"`
	Grace      bool                      `json:"grace,omitempty"`
	NoProgress int                       `json:"noProgress,omitempty"`
	Messages   []protocol.Message        `json:"messages"`
	Transient  []protocol.Message        `json:"transient,omitempty"`
	Causes     []Cause                   `json:"causes,omitempty"`
	Env        Environment               `json:"env"`
	Driver     json.RawMessage           `json:"driver,omitempty"`
	After      *Remembered               `json:"after,omitempty"`
	Usage      protocol.Usage            `json:"usage"`
	Calls      []protocol.CallRecord     `json:"calls,omitempty"`
	ToolCalls  []protocol.ToolCallRecord `json:"toolCalls,omitempty"`
	Issues     []protocol.Issue          `json:"issues,omitempty"`
	HadCode    bool                      `json:"hadCode,omitempty"`
	Outcome    *protocol.TurnOutcome     `json:"outcome,omitempty"`
}

// Machine runs one turn.
type Machine struct {
	driver Driver
	s      state
}

// New is a machine at the beginning of a turn.
func New(driver Driver, cfg Config) *Machine {
	m := &Machine{driver: driver, s: state{Config: cfg, Phase: phasePrepare, Iteration: 1}}
	m.s.Messages = append([]protocol.Message(nil), cfg.Input...)
	m.prepare()
	return m
}

// Restore is the machine that Snapshot wrote: its next effect is the same, with the same id.
func Restore(driver Driver, snapshot []byte) (*Machine, error) {
	m := &Machine{driver: driver}
	if err := json.Unmarshal(snapshot, &m.s); err != nil {
		return nil, fmt.Errorf("restore turn machine: %w", err)
	}
	return m, nil
}

// Snapshot is the whole machine as JSON.
func (m *Machine) Snapshot() ([]byte, error) { return json.Marshal(&m.s) }

// Next is the effect to perform now. Effects that nobody answers are handed out once; one that waits is handed out
// until its answer was delivered. After Done there is none.
func (m *Machine) Next() (Effect, bool) {
	if len(m.s.Outbox) > 0 {
		e := m.s.Outbox[0]
		m.s.Outbox = m.s.Outbox[1:]
		return e, true
	}
	if m.s.Active != nil {
		return *m.s.Active, true
	}
	return Effect{}, false
}

// Deliver takes the answer to the waiting effect id. An answer to any other effect is ignored: it came too late.
func (m *Machine) Deliver(id uint64, r Response) {
	if m.s.Active == nil || m.s.Active.ID != id || m.s.Phase == phaseFinished {
		return
	}
	active := m.s.Active
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
		m.checkpointPassed(r.Checkpoint)
	}
}

// Finished tells whether the turn has its outcome.
func (m *Machine) Finished() bool { return m.s.Phase == phaseFinished }

// Messages are the turn's messages so far; the n-th becomes the turn's n-th node. The caller does not change them.
func (m *Machine) Messages() []protocol.Message { return m.s.Messages }

// Iteration counts model calls, from 1.
func (m *Machine) Iteration() int { return m.s.Iteration }

// Result is what the turn came to; its outcome is set once the machine has finished.
func (m *Machine) Result() Result {
	return Result{
		Outcome: m.s.Outcome, Messages: m.s.Messages, Usage: m.s.Usage, Calls: m.s.Calls,
		ToolCalls: m.s.ToolCalls, Issues: m.s.Issues, HadCode: m.s.HadCode,
	}
}

func (m *Machine) view() View {
	return View{
		Iteration: m.s.Iteration, Grace: m.s.Grace, Messages: m.s.Messages, Tools: m.s.Env.Tools, State: m.s.Driver,
	}
}

func (m *Machine) wait(p phase, e Effect) {
	m.s.LastEffect++
	e.ID, e.Iteration = m.s.LastEffect, m.s.Iteration
	m.s.Phase, m.s.Active = p, &e
}

func (m *Machine) emit(e Effect) {
	e.Iteration = m.s.Iteration
	m.s.Outbox = append(m.s.Outbox, e)
}

// prepare begins an iteration: the environment is synced once in each, so that a tool enabled between two model calls
// is seen by the second and nothing changes inside one.
func (m *Machine) prepare() {
	m.wait(phaseSync, Effect{Kind: EffectSync, Sync: &Sync{Recompute: m.s.Iteration > 1}})
}

func (m *Machine) synced(env *Environment) {
	if env != nil {
		m.s.Env = *env
	}
	m.apply(m.driver.Prepare(m.view()))
}

func (m *Machine) appendMessage(msg protocol.Message) {
	m.s.Messages = append(m.s.Messages[:len(m.s.Messages):len(m.s.Messages)], msg)
	m.emit(Effect{Kind: EffectProgress, Progress: &Progress{Ordinal: len(m.s.Messages) - 1, Message: msg}})
}

func (m *Machine) issue(i protocol.Issue) {
	m.s.Issues = append(m.s.Issues, i)
	m.emit(Effect{Kind: EffectLog, Log: &i})
}
