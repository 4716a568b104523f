package protocol

import (
	"encoding/json"
	"strings"
)

// OutcomeKind is how a turn ended.
type OutcomeKind string

const (
	OutcomeAssistantMessage OutcomeKind = "assistantMessage" // finished: Text
	OutcomeFinalValue       OutcomeKind = "finalValue"       // finished: Value
	OutcomeToolValue        OutcomeKind = "toolValue"        // finished by a tool: Tool, Value
	OutcomeFrameSwitch      OutcomeKind = "frameSwitch"      // goes on in a new frame: Frame
	OutcomeCancelled        OutcomeKind = "cancelled"        // Cancel
	OutcomeIncomplete       OutcomeKind = "incomplete"       // the output limit cut the answer
	OutcomeInvalidInput     OutcomeKind = "invalidInput"
	OutcomeMaxTurns         OutcomeKind = "maxTurns" // the turn or no-progress budget ran out
	OutcomeToolFailure      OutcomeKind = "toolFailure"
	OutcomeProviderError    OutcomeKind = "providerError"
	OutcomePluginAbort      OutcomeKind = "pluginAbort"
	OutcomeRuntimeError     OutcomeKind = "runtimeError"
	OutcomeSubmittedError   OutcomeKind = "submittedError" // Value
	OutcomeToolError        OutcomeKind = "toolError"      // Tool, Value
)

// TurnOutcome is how a turn ended, with what that kind of end carries.
type TurnOutcome struct {
	Kind   OutcomeKind     `json:"kind"`
	Text   string          `json:"text,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Frame  *FrameSwitch    `json:"frame,omitempty"`
	Cancel *CancelEvidence `json:"cancel,omitempty"`
}

// Finished tells whether the turn reached its answer, rather than being stopped.
func (o TurnOutcome) Finished() bool {
	switch o.Kind {
	case OutcomeAssistantMessage, OutcomeFinalValue, OutcomeToolValue, OutcomeFrameSwitch:
		return true
	}
	return false
}

// FrameSwitch asks for a fresh frame in which the work goes on. With a blank key or task, or with the key of the frame that
// there is, it asks for nothing.
type FrameSwitch struct {
	Key   string     `json:"key"`
	Task  string     `json:"task"`
	Nodes []NodeBody `json:"nodes,omitempty"`
}

// Meant tells whether it asks for anything, whatever frame there is.
func (s *FrameSwitch) Meant() bool {
	return s != nil && strings.TrimSpace(s.Key) != "" && strings.TrimSpace(s.Task) != ""
}

// CancelEvidence says who cancelled. Requests that lashd makes itself have ids of the form internal:<subject>.
type CancelEvidence struct {
	RequestID string `json:"requestId"`
	Origin    string `json:"origin,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// Issue is something that went wrong in a turn, whether or not it ended the turn.
type Issue struct {
	Kind      string     `json:"kind"` // provider, tool, plugin, protocol, store, runtime
	Code      string     `json:"code"` // a stable word
	Message   string     `json:"message"`
	Stop      StopReason `json:"stop,omitempty"`
	Raw       string     `json:"raw,omitempty"` // at most 4,000 characters, head and tail
	Retryable bool       `json:"retryable,omitempty"`
}

// OutputState says what the text of a turn is good for.
type OutputState string

const (
	OutputUsable    OutputState = "usable"
	OutputEmpty     OutputState = "empty"
	OutputTraceback OutputState = "tracebackOnly"
	OutputRecovered OutputState = "recoveredFromError"
)

// AssistantOutput is the text of a turn: Raw as the model gave it, Safe without protocol syntax.
type AssistantOutput struct {
	Safe  string      `json:"safe"`
	Raw   string      `json:"raw,omitempty"` // only where it differs from Safe
	State OutputState `json:"state"`
}

// TurnReport is everything a turn came to. The same report is answered however often and by whomever it is asked for.
type TurnReport struct {
	TurnID        TurnID           `json:"turnId"`
	SessionID     SessionID        `json:"sessionId"`
	State         TurnState        `json:"state"`
	Outcome       *TurnOutcome     `json:"outcome,omitempty"` // set once the turn has ended
	Output        *AssistantOutput `json:"output,omitempty"`
	Usage         Usage            `json:"usage"`
	ChildrenUsage []UsageRow       `json:"childrenUsage,omitempty"`
	Calls         []CallRecord     `json:"calls,omitempty"`
	ToolCalls     []ToolCallRecord `json:"toolCalls,omitempty"`
	Issues        []Issue          `json:"issues,omitempty"`
	HadTools      bool             `json:"hadToolCalls,omitempty"`
	HadCode       bool             `json:"hadCodeExecution,omitempty"`
	AcceptedAtMs  int64            `json:"acceptedAtMs"`
	StartedAtMs   int64            `json:"startedAtMs,omitempty"`
	DurationMs    int64            `json:"durationMs,omitempty"` // from start to the final commit
	HeadRevision  int64            `json:"headRevision,omitempty"`
	FollowedBy    TurnID           `json:"followedBy,omitempty"` // the turn that goes on in another frame
}

// ToolCallRecord is one tool call of a turn, from start to result.
type ToolCallRecord struct {
	CallID     CallID          `json:"callId"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args"`
	Output     ToolOutput      `json:"output"`
	DurationMs int64           `json:"durationMs"`
	Parent     CallID          `json:"parent,omitempty"` // the call, or the code cell, that made this one; absent: the model did
	Order      int             `json:"order"`            // position in which it completed within its batch
}

// TurnState is where a turn is.
type TurnState string

const (
	TurnQueued    TurnState = "queued"
	TurnRunning   TurnState = "running"
	TurnWaiting   TurnState = "waiting" // for a decision
	TurnCompleted TurnState = "completed"
	TurnCancelled TurnState = "cancelled"
	TurnFailed    TurnState = "failed"
)

// Terminal tells whether a turn in this state has ended.
func (s TurnState) Terminal() bool {
	return s == TurnCompleted || s == TurnCancelled || s == TurnFailed
}
