package turn

import (
	"encoding/json"
	"slices"
	"strings"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// EffectKind names a kind of effect. Those with a comment wait for an answer.
type EffectKind string

const (
	EffectSync       EffectKind = "sync"       // waits for the environment
	EffectModel      EffectKind = "model"      // waits for a reply
	EffectTools      EffectKind = "tools"      // waits for the results of a batch
	EffectCode       EffectKind = "code"       // waits for a code cell
	EffectCheckpoint EffectKind = "checkpoint" // waits for inputs and messages to add
	EffectEmit       EffectKind = "emit"
	EffectProgress   EffectKind = "progress"
	EffectLog        EffectKind = "log"
	EffectDone       EffectKind = "done"
)

// Effect is a request of the machine to its interpreter. Waiting effects are numbered from 1 in a turn; the others have
// ID 0 and need no answer. Kind selects which field is set. Effects are stored in the journal, so their JSON must not
// change meaning.
type Effect struct {
	ID         uint64                `json:"id,omitempty"`
	Kind       EffectKind            `json:"kind"`
	Iteration  int                   `json:"iteration"`
	Sync       *Sync                 `json:"sync,omitempty"`
	Model      *ModelCall            `json:"model,omitempty"`
	Tools      *ToolBatch            `json:"tools,omitempty"`
	Code       *Cell                 `json:"code,omitempty"`
	Checkpoint *Checkpoint           `json:"checkpoint,omitempty"`
	Emit       *protocol.PluginNode  `json:"emit,omitempty"` // event of the driver, for observers
	Progress   *Progress             `json:"progress,omitempty"`
	Log        *protocol.Issue       `json:"log,omitempty"`
	Done       *protocol.TurnOutcome `json:"done,omitempty"`
}

// Waits reports whether the machine needs an answer to this effect before it continues.
func (e *Effect) Waits() bool { return e.ID != 0 }

// Sync asks for the environment of an iteration.
type Sync struct {
	Recompute bool `json:"recompute"` // false in the first iteration, for which the caller may have a current one
}

// Environment is the system prompt and the tools of a model call. It can change between iterations, but not within one.
type Environment struct {
	System string                  `json:"system"`
	Tools  []protocol.ToolManifest `json:"tools,omitempty"`
	Code   *CodeEnvironment        `json:"code,omitempty"` // nil: the session runs no code
}

// CodeEnvironment is the state of a session that runs code cells, at the beginning of an iteration.
type CodeEnvironment struct {
	Language string                `json:"language"`          // of the cells, and the name of their tags
	Globals  []protocol.CodeGlobal `json:"globals,omitempty"` // ordered by name
	Context  int64                 `json:"context,omitempty"` // tokens of the conversation, as the last model call counted them; 0: unknown
}

// ModelCall asks for a model reply. The interpreter adds the history before the turn.
type ModelCall struct {
	System     string                     `json:"system"`
	Tools      []protocol.ToolManifest    `json:"tools,omitempty"`
	Choice     provider.ToolChoice        `json:"choice"`
	Output     provider.OutputSpec        `json:"output"`
	Generation protocol.GenerationOptions `json:"generation"`
	// Messages are those of this turn. Messages with a cause go to the end of the prompt.
	Messages  []protocol.Message `json:"messages"`
	Transient []protocol.Message `json:"transient,omitempty"` // sent once, never stored
	Language  string             `json:"language,omitempty"`  // of code cells that the reply may contain; "": none
	// Fallback is the name of the model to ask instead of the session's, which has failed in this turn; "": ask the session's.
	Fallback string `json:"fallback,omitempty"`
}

// ToolBatch asks for the results of calls, which may run in parallel.
type ToolBatch struct {
	Calls []protocol.ToolCall `json:"calls"`
}

// Cell asks to run a piece of code.
type Cell struct {
	Language     string          `json:"language"`
	Source       string          `json:"source"`
	AcceptFinish bool            `json:"acceptFinish,omitempty"` // the code may end the turn
	Schema       json.RawMessage `json:"schema,omitempty"`       // JSON Schema of the value that ends the turn; nil: any value
}

// Checkpoint asks for inputs and messages to add to the turn at this point.
type Checkpoint struct {
	Kind protocol.Boundary `json:"kind"`
}

// Admits reports whether an input that asked to be added at the boundary least, or at a later one, can be added here.
func (c Checkpoint) Admits(least protocol.Boundary) bool {
	return least != protocol.BoundaryBeforeCompletion || c.Kind == protocol.BoundaryBeforeCompletion
}

// Progress reports a message that was added to the turn.
type Progress struct {
	Ordinal int               `json:"ordinal"` // index among the turn's nodes
	Message protocol.Message  `json:"message"`
	Entered protocol.Boundary `json:"entered,omitempty"` // checkpoint at which the message came from outside; empty: it did not
}

// Response answers a waiting effect. The field of the effect's kind is set.
type Response struct {
	Sync       *Environment `json:"sync,omitempty"`
	Exact      bool         `json:"-"` // Sync is a result of Environment.Exact
	Model      *ModelReply  `json:"model,omitempty"`
	Tools      []ToolReply  `json:"tools,omitempty"`
	Code       *CellReply   `json:"code,omitempty"`
	Checkpoint *Delivery    `json:"checkpoint,omitempty"`
}

// ModelReply is a complete reply, or the part received before the call failed or was stopped. The interpreter gives its
// tool calls ids that are new in the turn.
type ModelReply struct {
	Reply  provider.Reply      `json:"reply"`
	Record protocol.CallRecord `json:"record"`
	Error  *protocol.Issue     `json:"error,omitempty"` // why the call failed; nil: it did not
	// Fallback is the name of the model that the rest of the turn asks, if the call failed; "": the failure ends the turn.
	Fallback string `json:"fallback,omitempty"`
	// Value is the value in a reply without tool calls, if the call asked for one; nil: the reply is not such a value.
	Value   json.RawMessage          `json:"value,omitempty"`
	Problem string                   `json:"problem,omitempty"` // why the reply is not a value of the schema; "": it is one, or none was asked for
	Cancel  *protocol.CancelEvidence `json:"cancel,omitempty"`  // the turn was cancelled during the call; nil: it was not
}

// ToolReply is the result of one call of a batch.
type ToolReply struct {
	CallID     protocol.CallID       `json:"callId"`
	Name       string                `json:"name"`
	Args       json.RawMessage       `json:"args,omitempty"`  // if a hook replaced them: the ones that the call ran with
	Output     protocol.ToolOutput   `json:"output"`          // full output, for the record
	Shown      *protocol.ToolOutput  `json:"shown,omitempty"` // what enters the conversation, if it differs from Output
	Control    *protocol.ToolControl `json:"control,omitempty"`
	DurationMs int64                 `json:"durationMs"`
	Order      int                   `json:"order"` // position in the order of completion

	Calls []protocol.ToolCallRecord `json:"calls,omitempty"` // that the call made itself
}

// succeeded reports whether the call counts as progress. A call that makes calls counts if one of them succeeded.
func (r *ToolReply) succeeded() bool {
	if len(r.Calls) == 0 {
		return r.Output.Status == protocol.OutputSuccess
	}
	return slices.ContainsFunc(r.Calls, func(c protocol.ToolCallRecord) bool { return c.Output.Status == protocol.OutputSuccess })
}

// Seen returns the output that enters the conversation.
func (r *ToolReply) Seen() protocol.ToolOutput {
	if r.Shown != nil {
		return *r.Shown
	}
	return r.Output
}

// CellReply is the result of a code cell.
type CellReply struct {
	ID         protocol.CallID           `json:"id,omitempty"`      // of the cell, which Calls name as their parent; lashd sets it
	Printed    string                    `json:"printed,omitempty"` // text that the code printed
	Value      json.RawMessage           `json:"value,omitempty"`   // of the last expression; nil: it has none
	Error      string                    `json:"error,omitempty"`   // of the code; empty: it ran without one
	Position   *protocol.CodePosition    `json:"position,omitempty"`
	Control    *protocol.ToolControl     `json:"control,omitempty"`    // how the code ended the turn; nil: it did not
	Calls      []protocol.ToolCallRecord `json:"calls,omitempty"`      // that the code made, in order
	Changed    []string                  `json:"changed,omitempty"`    // globals that the code set or removed
	Unsaved    []protocol.UnsavedGlobal  `json:"unsaved,omitempty"`    // globals that cannot be stored
	Shown      []protocol.CellCall       `json:"shown,omitempty"`      // the first of Calls, as people see them; lashd sets it
	DurationMs int64                     `json:"durationMs,omitempty"` // of this run of the code; lashd sets it
	Fatal      *protocol.Issue           `json:"fatal,omitempty"`      // ends the turn without a decision of the driver
}

// maxInline limits the printed text and the value that are stored of a cell for people, in bytes.
const maxInline = 64 << 10

// Result returns the result of the cell for people.
func (r *CellReply) Result() *protocol.CodeResult {
	shown := &protocol.CodeResult{
		CellID: r.ID, Printed: r.Printed, Value: r.Value, Error: r.Error, Position: r.Position, Changed: r.Changed, Unsaved: r.Unsaved,
		DurationMs: r.DurationMs, Calls: r.Shown, MoreCalls: len(r.Calls) - len(r.Shown),
	}
	if len(r.Printed) > maxInline {
		shown.Printed = strings.ToValidUTF8(r.Printed[:maxInline], "")
	}
	if len(r.Value) > maxInline {
		shown.Value = nil
	}
	return shown
}

// Delivery is what a checkpoint adds to a turn.
type Delivery struct {
	// Inputs are steered inputs of people, and wakes. A cause that is already in the turn is not added again.
	Inputs    []protocol.Message `json:"inputs,omitempty"`
	Messages  []protocol.Message `json:"messages,omitempty"` // from plugins, with role user or system
	Transient []protocol.Message `json:"transient,omitempty"`
	Abort     *protocol.Issue    `json:"abort,omitempty"` // a plugin ends the turn; nil: none does
}

// Remembered is what follows a checkpoint that delivers nothing: an outcome, or the next iteration if Finish is nil.
type Remembered struct {
	Finish *protocol.TurnOutcome `json:"finish,omitempty"`
}

// Result is the state of a turn for its report.
type Result struct {
	Outcome   *protocol.TurnOutcome // nil: not finished
	Messages  []protocol.Message
	Usage     protocol.Usage
	Calls     []protocol.CallRecord
	ToolCalls []protocol.ToolCallRecord
	Issues    []protocol.Issue
	HadCode   bool // the turn ran code cells
}

// Answer returns the text of the turn's final value, or of its last assistant message as the model wrote it.
func (r *Result) Answer() string {
	if o := r.Outcome; o != nil && o.Kind == protocol.OutcomeFinalValue && o.Text != "" {
		return o.Text
	}
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := &r.Messages[i]; m.Role == protocol.RoleAssistant {
			return m.Answer()
		}
	}
	return ""
}
