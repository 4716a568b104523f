package turn

import (
	"encoding/json"
	"slices"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// EffectKind names an effect.
type EffectKind string

const (
	EffectSync       EffectKind = "sync"       // waits for the environment
	EffectModel      EffectKind = "model"      // waits for a reply
	EffectTools      EffectKind = "tools"      // waits for the results of a batch
	EffectCode       EffectKind = "code"       // waits for a code cell
	EffectCheckpoint EffectKind = "checkpoint" // waits for what may enter the turn here
	EffectEmit       EffectKind = "emit"
	EffectProgress   EffectKind = "progress"
	EffectLog        EffectKind = "log"
	EffectDone       EffectKind = "done"
)

// Effect is something for the interpreter to do. ID counts the waiting effects of a turn from 1; effects that nobody
// answers have none. Kind tells which of the fields is set.
type Effect struct {
	ID         uint64                `json:"id,omitempty"`
	Kind       EffectKind            `json:"kind"`
	Iteration  int                   `json:"iteration"`
	Sync       *Sync                 `json:"sync,omitempty"`
	Model      *ModelCall            `json:"model,omitempty"`
	Tools      *ToolBatch            `json:"tools,omitempty"`
	Code       *Cell                 `json:"code,omitempty"`
	Checkpoint *Checkpoint           `json:"checkpoint,omitempty"`
	Emit       *protocol.PluginNode  `json:"emit,omitempty"` // news of the driver, for observers
	Progress   *Progress             `json:"progress,omitempty"`
	Log        *protocol.Issue       `json:"log,omitempty"`
	Done       *protocol.TurnOutcome `json:"done,omitempty"`
}

// Waits tells whether the machine stands still until the effect is answered.
func (e *Effect) Waits() bool { return e.ID != 0 }

// Sync asks for the environment of an iteration.
type Sync struct {
	Recompute bool `json:"recompute"` // false in the first iteration, where the caller may have it at hand
}

// Environment is what a model call is made in: it may change between iterations, never inside one.
type Environment struct {
	System string                  `json:"system"`
	Tools  []protocol.ToolManifest `json:"tools,omitempty"`
}

// ModelCall asks for a reply. History before the turn is the interpreter's to put in front.
type ModelCall struct {
	System     string                     `json:"system"`
	Tools      []protocol.ToolManifest    `json:"tools,omitempty"`
	Choice     provider.ToolChoice        `json:"choice"`
	Output     provider.OutputSpec        `json:"output"`
	Generation protocol.GenerationOptions `json:"generation"`
	Messages   []protocol.Message         `json:"messages"`            // of this turn; those that have a cause are shown at the end of the prompt
	Transient  []protocol.Message         `json:"transient,omitempty"` // shown once, never stored
}

// ToolBatch asks for the results of calls, which may run at once.
type ToolBatch struct {
	Calls []protocol.ToolCall `json:"calls"`
}

// Cell asks for a piece of code to be run.
type Cell struct {
	Language     string `json:"language"`
	Source       string `json:"source"`
	AcceptFinish bool   `json:"acceptFinish,omitempty"` // it may end the turn
}

// Checkpoint asks what may enter the turn at this seam.
type Checkpoint struct {
	Kind protocol.Boundary `json:"kind"`
}

// Admits tells whether an input may enter here that wants to enter at least's seam or a later one.
func (c Checkpoint) Admits(least protocol.Boundary) bool {
	return least != protocol.BoundaryBeforeCompletion || c.Kind == protocol.BoundaryBeforeCompletion
}

// Progress tells that a message was added to the turn.
type Progress struct {
	Ordinal int               `json:"ordinal"` // of the turn's nodes
	Message protocol.Message  `json:"message"`
	Entered protocol.Boundary `json:"entered,omitempty"` // the checkpoint at which it came in from outside, if it did
}

// Response answers a waiting effect. The field of the effect's kind is set.
type Response struct {
	Sync       *Environment `json:"sync,omitempty"`
	Exact      bool         `json:"-"` // Sync is what Environment.Exact gave
	Model      *ModelReply  `json:"model,omitempty"`
	Tools      []ToolReply  `json:"tools,omitempty"`
	Code       *CellReply   `json:"code,omitempty"`
	Checkpoint *Delivery    `json:"checkpoint,omitempty"`
}

// ModelReply is a reply, or what was received of it and why it failed or was stopped. Its tool calls have ids that the
// turn has not used.
type ModelReply struct {
	Reply  provider.Reply           `json:"reply"`
	Record protocol.CallRecord      `json:"record"`
	Error  *protocol.Issue          `json:"error,omitempty"`
	Cancel *protocol.CancelEvidence `json:"cancel,omitempty"` // the turn was cancelled during the call
}

// ToolReply is the result of one call of a batch.
type ToolReply struct {
	CallID     protocol.CallID       `json:"callId"`
	Name       string                `json:"name"`
	Args       json.RawMessage       `json:"args,omitempty"`  // as they were run, where a hook replaced them
	Output     protocol.ToolOutput   `json:"output"`          // for the record
	Shown      *protocol.ToolOutput  `json:"shown,omitempty"` // what enters the conversation, where it is not the output
	Control    *protocol.ToolControl `json:"control,omitempty"`
	DurationMs int64                 `json:"durationMs"`
	Order      int                   `json:"order"` // position in which it completed

	Calls []protocol.ToolCallRecord `json:"calls,omitempty"` // that it made itself
}

// good tells whether the call got anywhere: one that makes calls does if one of them does.
func (r *ToolReply) good() bool {
	if len(r.Calls) == 0 {
		return r.Output.Status == protocol.OutputSuccess
	}
	return slices.ContainsFunc(r.Calls, func(c protocol.ToolCallRecord) bool { return c.Output.Status == protocol.OutputSuccess })
}

// Seen is the output as it enters the conversation.
func (r *ToolReply) Seen() protocol.ToolOutput {
	if r.Shown != nil {
		return *r.Shown
	}
	return r.Output
}

// CellReply is what a code cell came to.
type CellReply struct {
	Printed string                    `json:"printed,omitempty"`
	Value   json.RawMessage           `json:"value,omitempty"`
	Error   string                    `json:"error,omitempty"`
	Control *protocol.ToolControl     `json:"control,omitempty"`
	Calls   []protocol.ToolCallRecord `json:"calls,omitempty"`
}

// Delivery is what enters a turn at a checkpoint.
type Delivery struct {
	Inputs    []protocol.Message `json:"inputs,omitempty"`   // of people, steered into the turn, and of what woke the session; each cause enters once
	Messages  []protocol.Message `json:"messages,omitempty"` // of plugins: user and system roles only
	Transient []protocol.Message `json:"transient,omitempty"`
	Abort     *protocol.Issue    `json:"abort,omitempty"` // a plugin stops the turn
}

// Remembered is what a checkpoint that delivers nothing leads to: an outcome, or else the next iteration.
type Remembered struct {
	Finish *protocol.TurnOutcome `json:"finish,omitempty"`
}

// Result is what a turn came to.
type Result struct {
	Outcome   *protocol.TurnOutcome
	Messages  []protocol.Message
	Usage     protocol.Usage
	Calls     []protocol.CallRecord
	ToolCalls []protocol.ToolCallRecord
	Issues    []protocol.Issue
	HadCode   bool
}
