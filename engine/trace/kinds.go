package trace

import (
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Kind names the type of a trace record.
type Kind string

const (
	SessionStarted Kind = "session_started"          // a session was loaded
	TurnStarted    Kind = "turn_started"             // a turn starts, or continues after a restart
	PromptBuilt    Kind = "prompt_built"             // with a fingerprint of each section, to explain a cache miss
	ModelStarted   Kind = "llm_call_started"         // a model call begins
	ModelCompleted Kind = "llm_call_completed"       // the model call succeeded
	ModelFailed    Kind = "llm_call_failed"          // the model call failed
	ToolStarted    Kind = "tool_call_started"        // an attempt at a tool call begins
	ToolCompleted  Kind = "tool_call_completed"      // the attempt has a result
	CellStarted    Kind = "code_cell_started"        // a code cell begins to run; it is the parent of its calls
	CellCompleted  Kind = "code_cell_completed"      // the code cell has a result
	EffectStarted  Kind = "journaled_effect_started" // the engine performs an effect that the turn machine asked for
	EffectSettled  Kind = "journaled_effect_settled" // the machine has the answer to an effect
	EffectDiff     Kind = "effect_envelope_diff"     // a resumed turn asks for a different effect than before
	WaitParked     Kind = "durable_wait_parked"      // a turn waits for a decision
	WaitResolved   Kind = "durable_wait_resolved"    // the decision is answered
	StoreError     Kind = "store_error_observed"     // a commit failed
	ProtocolStep   Kind = "protocol_step"            // the driver has processed an answer
	TokenUsage     Kind = "token_usage"              // tokens of a turn
	TurnCompleted  Kind = "turn_completed"           // a turn has ended and is stored
	Issue          Kind = "issue"                    // something went wrong in a turn
	Custom         Kind = "custom"                   // from a driver or plugin
)

// Session is the body of SessionStarted.
type Session struct {
	Driver   string          `json:"driver"`
	Model    string          `json:"model"`
	Provider string          `json:"provider"`
	Head     protocol.Head   `json:"head"`
	Kind     string          `json:"relation"`
	Turns    int             `json:"openTurns"`
	Budget   protocol.Budget `json:"budget"`
}

// Turn is the body of TurnStarted.
type Turn struct {
	Resumed bool               `json:"resumed,omitempty"`
	Inputs  []protocol.InputID `json:"inputs"`
}

// Prompt is the body of PromptBuilt.
type Prompt struct {
	System    string `json:"system"` // digest; so is Tools
	Tools     string `json:"tools"`
	History   string `json:"history"` // digest of the messages before the turn
	Turn      string `json:"turn"`    // digest of the turn's own messages
	Bytes     int    `json:"systemBytes"`
	ToolCount int    `json:"toolCount"`
	Messages  int    `json:"messageCount"`
}

// Effect is the body of ModelStarted, EffectStarted and EffectSettled.
type Effect struct {
	ID   uint64          `json:"id"`
	Kind turn.EffectKind `json:"kind"`
}

// Step is the body of ProtocolStep.
type Step struct {
	Effect   turn.EffectKind `json:"effect"`
	Messages int             `json:"messages"`
	Finished bool            `json:"finished,omitempty"`
}

// Wait is the body of WaitParked and WaitResolved.
type Wait struct {
	Decision protocol.DecisionID     `json:"decisionId"`
	Kind     protocol.DecisionKind   `json:"kind"`
	CallID   protocol.CallID         `json:"callId"`
	Choice   protocol.DecisionChoice `json:"choice,omitempty"`
}

// Failure is the body of StoreError.
type Failure struct {
	Error string `json:"error"`
	Waits bool   `json:"waits,omitempty"` // lashd retries it
}

// Diff is the body of EffectDiff.
type Diff struct {
	Effect uint64 `json:"effect"`
	Kind   string `json:"kind"`
	Diff   string `json:"diff"`
}

// ModelCall is the body of ModelCompleted and ModelFailed.
type ModelCall struct {
	Record protocol.CallRecord `json:"record"`
	Parts  int                 `json:"parts"`
	Error  string              `json:"error,omitempty"`
}

// Completion is the body of a record about a model call outside of turns.
type Completion struct {
	Label  string               `json:"label"`
	Model  string               `json:"model"`
	Record *protocol.CallRecord `json:"record,omitempty"` // if the call succeeded
	Error  string               `json:"error,omitempty"`
}

// ToolCall is the body of ToolStarted and ToolCompleted.
type ToolCall struct {
	Name     string          `json:"name"`
	Parent   protocol.CallID `json:"parent,omitempty"`
	Attempt  int             `json:"attempt"`
	ArgBytes int             `json:"argBytes"`
	ArgsHash protocol.Digest `json:"argsHash"`
	// Verdict says whether lashd allowed, denied or asked about the call, and Why names the rule, mode or sandbox that decided. A call
	// that was not judged has neither.
	Verdict protocol.ApprovalMode    `json:"verdict,omitempty"`
	Why     *protocol.ApprovalReason `json:"why,omitempty"`

	Status   protocol.OutputStatus `json:"status,omitempty"`
	Code     string                `json:"code,omitempty"` // of a failure
	Bytes    int                   `json:"bytes,omitempty"`
	Duration int64                 `json:"durationMs,omitempty"`
	Control  protocol.ControlKind  `json:"control,omitempty"`
}

// Cell is the body of CellStarted and CellCompleted. The callId of the record is the parent of the calls of the cell.
type Cell struct {
	Language string `json:"language"`
	Bytes    int    `json:"sourceBytes"`
	Repeated bool   `json:"repeated,omitempty"` // it started before a crash and runs again
	Failed   bool   `json:"failed,omitempty"`   // the code ended with an error
	Calls    int    `json:"toolCalls,omitempty"`
	Changed  int    `json:"changedGlobals,omitempty"`
	Duration int64  `json:"durationMs,omitempty"`
}

// Usage is the body of TokenUsage.
type Usage struct {
	Turn  protocol.Usage `json:"turn"`
	Calls int            `json:"calls"`
}

// TurnEnd is the body of TurnCompleted.
type TurnEnd struct {
	State      protocol.TurnState   `json:"state"`
	Outcome    protocol.OutcomeKind `json:"outcome"`
	Calls      int                  `json:"modelCalls"`
	ToolCalls  int                  `json:"toolCalls"`
	Issues     []string             `json:"issues,omitempty"` // codes
	DurationMs int64                `json:"durationMs"`
	Revision   int64                `json:"headRevision"`
}
