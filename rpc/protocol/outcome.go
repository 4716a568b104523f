package protocol

import (
	"encoding/json"
	"strings"
)

// OutcomeKind says how a turn ended.
type OutcomeKind string

const (
	OutcomeAssistantMessage OutcomeKind = "assistantMessage" // the model replied: text
	OutcomeFinalValue       OutcomeKind = "finalValue"       // the turn produced a value: value, and text if it is the model's reply
	OutcomeToolValue        OutcomeKind = "toolValue"        // a tool ended the turn with a value: tool, value
	OutcomeFrameSwitch      OutcomeKind = "frameSwitch"      // the work continues in a new frame: frame
	OutcomeCancelled        OutcomeKind = "cancelled"        // the turn was cancelled: cancel
	OutcomeIncomplete       OutcomeKind = "incomplete"       // the reply reached the output limit
	OutcomeInvalidValue     OutcomeKind = "invalidValue"     // no reply of the model matched the schema of the turn: text
	OutcomeInvalidInput     OutcomeKind = "invalidInput"     // the input is invalid
	OutcomeMaxTurns         OutcomeKind = "maxTurns"         // the turn reached its limit of model calls, or of attempts without success
	OutcomeToolFailure      OutcomeKind = "toolFailure"      // a tool failure ended the turn
	OutcomeProviderError    OutcomeKind = "providerError"    // model calls failed
	OutcomePluginAbort      OutcomeKind = "pluginAbort"      // a plugin aborted the turn
	OutcomeRuntimeError     OutcomeKind = "runtimeError"     // lashd or a plugin failed
	OutcomeSubmittedError   OutcomeKind = "submittedError"   // the agent reported an error: value
	OutcomeToolError        OutcomeKind = "toolError"        // a tool ended the turn with an error: tool, value
)

// TurnOutcome says how a turn ended. OutcomeKind lists the fields of each kind.
type TurnOutcome struct {
	Kind   OutcomeKind     `json:"kind"`
	Text   string          `json:"text,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Frame  *FrameSwitch    `json:"frame,omitempty"`
	Cancel *CancelEvidence `json:"cancel,omitempty"`
}

// Finished reports whether the turn completed its work.
func (o TurnOutcome) Finished() bool {
	switch o.Kind {
	case OutcomeAssistantMessage, OutcomeFinalValue, OutcomeToolValue, OutcomeFrameSwitch:
		return true
	}
	return false
}

// State returns the state of a turn that ended with the outcome.
func (o TurnOutcome) State() TurnState {
	switch {
	case o.Kind == OutcomeCancelled:
		return TurnCancelled
	case o.Finished():
		return TurnCompleted
	}
	return TurnFailed
}

// FrameSwitch requests a new frame in which the work continues. lashd ignores it if key or task is blank, or if key is the key of
// the current frame.
type FrameSwitch struct {
	Key   string     `json:"key"`
	Task  string     `json:"task"`
	Nodes []NodeBody `json:"nodes,omitempty"`
}

// Meant reports whether key and task are not blank. It is safe on nil.
func (s *FrameSwitch) Meant() bool {
	return s != nil && strings.TrimSpace(s.Key) != "" && strings.TrimSpace(s.Task) != ""
}

// CancelEvidence says who cancelled a turn. Requests of lashd itself have ids of the form internal:<subject>.
type CancelEvidence struct {
	RequestID string `json:"requestId"`
	Origin    string `json:"origin,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// Issue is a problem in a turn. It may or may not have ended the turn.
type Issue struct {
	Kind      string     `json:"kind"` // provider, tool, plugin, protocol, store or runtime
	Code      string     `json:"code"` // a stable name
	Message   string     `json:"message"`
	Stop      StopReason `json:"stop,omitempty"`
	Raw       string     `json:"raw,omitempty"` // original error text, shortened to 4,000 characters (head and tail)
	Retryable bool       `json:"retryable,omitempty"`
	Auth      bool       `json:"auth,omitempty"` // the API key of the model's provider is missing or was refused; lash login stores another one
}

// OutputState says whether the text of a turn is usable.
type OutputState string

const (
	OutputUsable    OutputState = "usable"
	OutputEmpty     OutputState = "empty"
	OutputTraceback OutputState = "tracebackOnly"
	OutputRecovered OutputState = "recoveredFromError"
)

// AssistantOutput is the text of a turn.
type AssistantOutput struct {
	Safe  string      `json:"safe"`          // without protocol syntax
	Raw   string      `json:"raw,omitempty"` // as the model wrote it; set only if it differs from safe
	State OutputState `json:"state"`
}

// TurnReport describes a turn and its results. All clients receive the same report.
type TurnReport struct {
	TurnID        TurnID           `json:"turnId"`
	SessionID     SessionID        `json:"sessionId"`
	State         TurnState        `json:"state"`
	Outcome       *TurnOutcome     `json:"outcome,omitempty"` // set when the turn has ended
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
	DurationMs    int64            `json:"durationMs,omitempty"` // from the start to the final commit
	HeadRevision  int64            `json:"headRevision,omitempty"`
	FollowedBy    TurnID           `json:"followedBy,omitempty"` // the turn that continues in another frame
}

// ToolCallRecord is one tool call of a turn, from start to result.
type ToolCallRecord struct {
	CallID     CallID          `json:"callId"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args"`
	Output     ToolOutput      `json:"output"`
	DurationMs int64           `json:"durationMs"`
	Parent     CallID          `json:"parent,omitempty"` // the call or the code cell that made this call; absent: the model made it
	Order      int             `json:"order"`            // position in the order of completion within its batch
}

// TurnState is the state of a turn.
type TurnState string

const (
	TurnQueued    TurnState = "queued"
	TurnRunning   TurnState = "running"
	TurnWaiting   TurnState = "waiting" // waiting for a decision
	TurnCompleted TurnState = "completed"
	TurnCancelled TurnState = "cancelled"
	TurnFailed    TurnState = "failed"
)

// Terminal reports whether a turn in this state has ended.
func (s TurnState) Terminal() bool {
	return s == TurnCompleted || s == TurnCancelled || s == TurnFailed
}
