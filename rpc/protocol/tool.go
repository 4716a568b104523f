package protocol

import "encoding/json"

// ToolManifest is what the model is told of a tool.
type ToolManifest struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input,omitempty"` // JSON Schema of the arguments; absent: no arguments
	Kind        ToolKind        `json:"kind,omitempty"`  // how clients should show it
}

// ToolKind groups tools for display, in ACP's words.
type ToolKind string

const (
	ToolKindRead    ToolKind = "read"
	ToolKindEdit    ToolKind = "edit"
	ToolKindDelete  ToolKind = "delete"
	ToolKindMove    ToolKind = "move"
	ToolKindSearch  ToolKind = "search"
	ToolKindExecute ToolKind = "execute"
	ToolKindThink   ToolKind = "think"
	ToolKindFetch   ToolKind = "fetch"
	ToolKindOther   ToolKind = "other"
)

// ToolContract is what lashd must know to run a tool.
type ToolContract struct {
	Replay    Replay `json:"replay"`
	Serial    bool   `json:"serial,omitempty"`    // not beside other calls of its batch
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // 0: no limit of its own
	MayDefer  bool   `json:"mayDefer,omitempty"`  // may answer pending
}

// Replay says whether a call that was started, and whose result was lost, may be made again.
type Replay string

const (
	ReplayNever      Replay = "never" // the default: at most once
	ReplaySafe       Replay = "safe"  // no effects, or effects that can be repeated
	ReplayIdempotent Replay = "idempotent"
)

// ToolRecord is a tool in a catalog.
type ToolRecord struct {
	ToolManifest
	Source   string       `json:"source"` // the plugin or client that provides it
	Contract ToolContract `json:"contract"`
	Revision Digest       `json:"revision"` // changes when manifest or contract do
	Tokens   int          `json:"estimatedTokens"`
	Member   bool         `json:"member"`   // in the catalog the model sees
	Orphan   bool         `json:"orphan"`   // its source is gone; its settings are kept
	Document bool         `json:"document"` // described in the prompt
}

// ToolState is the saved state of a session's tools. Generation grows with each change, and a change that names an
// older generation is refused.
type ToolState struct {
	Generation int64              `json:"generation"`
	Tools      []ToolStateSetting `json:"tools"` // in order of name
}

// ToolStateSetting is what a session decided about one tool.
type ToolStateSetting struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Member bool   `json:"member"`
	Orphan bool   `json:"orphan,omitempty"`
}

// ToolCall is a call as the model made it.
type ToolCall struct {
	CallID CallID          `json:"callId"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
}

// ToolResult is the answer to a call, as it stands in the conversation.
type ToolResult struct {
	CallID     CallID     `json:"callId"`
	Name       string     `json:"name"`
	Output     ToolOutput `json:"output"`
	DurationMs int64      `json:"durationMs,omitempty"`
	Order      int        `json:"order"` // position in which it completed within its batch
}

// OutputStatus is how a tool call ended.
type OutputStatus string

const (
	OutputSuccess   OutputStatus = "success"
	OutputFailure   OutputStatus = "failure"
	OutputCancelled OutputStatus = "cancelled"
	OutputUnknown   OutputStatus = "unknown" // it was started, and nobody knows what became of it
)

// ToolOutput is what a tool call came to.
type ToolOutput struct {
	Status    OutputStatus    `json:"status"`
	Text      string          `json:"text,omitempty"`  // what the model reads
	Value     json.RawMessage `json:"value,omitempty"` // structured result for clients and code
	Failure   *ToolFailure    `json:"failure,omitempty"`
	Artifact  *ArtifactRef    `json:"artifact,omitempty"` // the whole output, where Text is a part of it
	Change    *FileChange     `json:"change,omitempty"`   // what the call changed in the workspace
	Exhausted bool            `json:"exhausted,omitempty"`
}

// ArtifactRef points at bytes kept beside the conversation.
type ArtifactRef struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`
	Type   string `json:"type,omitempty"`
}

// FileChange is an edit of a workspace file, for clients to show.
type FileChange struct {
	Path    string `json:"path"`
	Diff    string `json:"diff"` // unified
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// FailureClass groups tool failures.
type FailureClass string

const (
	FailInvalidRequest FailureClass = "invalidRequest"
	FailIO             FailureClass = "io"
	FailUnavailable    FailureClass = "unavailable"
	FailPermission     FailureClass = "permissionDenied"
	FailTimeout        FailureClass = "timeout"
	FailExecution      FailureClass = "execution"
	FailExternal       FailureClass = "external"
	FailResourceLimit  FailureClass = "resourceLimit"
	FailInternal       FailureClass = "internal"
)

// FailureSource says which part of the system a failure comes from.
type FailureSource string

const (
	FromRuntime      FailureSource = "runtime"
	FromTool         FailureSource = "tool"
	FromPlugin       FailureSource = "plugin"
	FromPolicy       FailureSource = "policy"
	FromCancellation FailureSource = "cancellation"
)

// ToolFailure is why a tool call failed.
type ToolFailure struct {
	Class   FailureClass    `json:"class"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Source  FailureSource   `json:"source"`
	Retry   bool            `json:"retry,omitempty"`        // trying again is safe and may help
	AfterMs int64           `json:"retryAfterMs,omitempty"` // not before
	Raw     json.RawMessage `json:"raw,omitempty"`
}

// Succeed is a successful output that the model reads as text.
func Succeed(text string) ToolOutput { return ToolOutput{Status: OutputSuccess, Text: text} }

// Fail is a failed output.
func Fail(class FailureClass, code, message string, source FailureSource) ToolOutput {
	return ToolOutput{
		Status:  OutputFailure,
		Text:    message,
		Failure: &ToolFailure{Class: class, Code: code, Message: message, Source: source},
	}
}

// ControlKind is what a tool may ask of the turn.
type ControlKind string

const (
	ControlFinish      ControlKind = "finish"
	ControlFail        ControlKind = "fail"
	ControlSwitchFrame ControlKind = "switchFrame"
)

// ToolControl ends or redirects the turn. The first one of a successful call, in the order of the calls, counts.
type ToolControl struct {
	Kind  ControlKind     `json:"kind"`
	Value json.RawMessage `json:"value,omitempty"`
	Frame *FrameSwitch    `json:"frame,omitempty"`
}
