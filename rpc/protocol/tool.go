package protocol

import "encoding/json"

// ToolManifest is what is cheap to know of a tool. The model is told its name, description and input.
type ToolManifest struct {
	ID          string                     `json:"id,omitempty"` // what the tool is known by for ever; absent: its name
	Name        string                     `json:"name"`         // what the model calls it; unique in a session
	Description string                     `json:"description"`
	Input       json.RawMessage            `json:"input,omitempty"`      // JSON Schema of the arguments; absent: any object
	Kind        ToolKind                   `json:"kind,omitempty"`       // how clients should show it
	Activation  ToolActivation             `json:"activation,omitempty"` // absent: always
	Like        string                     `json:"like,omitempty"`       // another tool that does the same in another way: approval rules that ask or deny for that one hold for this one too
	Bindings    map[string]json.RawMessage `json:"bindings,omitempty"`   // how the tool appears elsewhere, such as in a language
}

// ToolActivation says who may call a tool.
type ToolActivation string

const (
	ActivateAlways   ToolActivation = "always"   // the model, and whoever else can
	ActivateInternal ToolActivation = "internal" // not the model: it is not told of the tool
)

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

// ToolContract is what must be known to run a tool.
type ToolContract struct {
	Replay    Replay            `json:"replay"`
	Serial    bool              `json:"serial,omitempty"`    // not beside other calls of its batch
	TimeoutMs int64             `json:"timeoutMs,omitempty"` // 0: no limit of its own
	Retry     *ToolRetry        `json:"retry,omitempty"`     // of failures that say that it is safe; only where Replay is not never
	MayDefer  bool              `json:"mayDefer,omitempty"`  // may answer pending
	Varying   []string          `json:"varying,omitempty"`   // arguments that a person's standing answer does not look at, such as the content of a file; absent: it looks at all
	Input     json.RawMessage   `json:"input,omitempty"`     // JSON Schema of the arguments; absent: the manifest's, or any object
	Output    json.RawMessage   `json:"output,omitempty"`    // JSON Schema of the result's value; absent: not known
	Examples  []json.RawMessage `json:"examples,omitempty"`  // of arguments
}

// ToolRetry says how often a call is tried, and the time between two attempts, which doubles from base to cap.
type ToolRetry struct {
	Attempts int   `json:"maxAttempts"` // the first included
	BaseMs   int64 `json:"baseMs"`
	CapMs    int64 `json:"capMs"`
}

// Replay says whether a call that was started, and whose result was lost, may be made again.
type Replay string

const (
	ReplayNever      Replay = "never" // the default: at most once
	ReplaySafe       Replay = "safe"  // no effects, or effects that can be repeated
	ReplayIdempotent Replay = "idempotent"
)

// ToolRecord is a tool of a session.
type ToolRecord struct {
	ToolManifest
	Source       string           `json:"source"` // the plugin or client that provides it; empty: none does
	Contract     ToolContract     `json:"contract"`
	Revision     Digest           `json:"revision"` // changes when manifest or contract do
	Tokens       int              `json:"estimatedTokens"`
	Member       bool             `json:"member"`   // in the catalog the model sees
	Orphan       bool             `json:"orphan"`   // nothing provides it any more; its settings are kept
	Document     bool             `json:"document"` // described in the prompt
	Availability ToolAvailability `json:"availability"`
}

// ToolState is the saved state of a session's tools. Generation grows with each change, and a change that names an
// older generation is refused.
type ToolState struct {
	Generation int64                  `json:"generation"`
	Tools      map[string]ToolSetting `json:"tools"` // by id
}

// ToolSetting is what a session decided about one tool. It does not say where the tool comes from: whoever offers the
// same id later gets the same settings.
type ToolSetting struct {
	Manifest ToolManifest     `json:"manifest"`           // as last seen, without the schema
	Orphaned bool             `json:"orphaned,omitempty"` // nothing provides it any more
	Member   *bool            `json:"member,omitempty"`   // in the catalog the model sees; absent: true
	Override ToolAvailability `json:"override,omitempty"` // as tool/setAvailability set it
}

// IsMember tells whether the model may call the tool, if something provides it.
func (s ToolSetting) IsMember() bool { return s.Member == nil || *s.Member }

// ToolAvailability is how far a tool is open to the model. Each level has what the ones before it have.
type ToolAvailability string

const (
	ToolOff        ToolAvailability = "off"
	ToolSearchable ToolAvailability = "searchable" // can be found, not called
	ToolCallable   ToolAvailability = "callable"
	ToolShowcased  ToolAvailability = "showcased" // described in the prompt, too; the default
)

// ToolCall is a call as the model made it, or as another call did.
type ToolCall struct {
	CallID CallID          `json:"callId"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
	Parent CallID          `json:"parent,omitempty"` // the call that makes this one; absent: the model does
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
	Artifact  *ArtifactRef    `json:"artifact,omitempty"`  // the whole output, where Text is a part of it
	Change    *FileChange     `json:"change,omitempty"`    // what the call changed in the workspace
	Exhausted bool            `json:"exhausted,omitempty"` // it was tried as often as it may be
	Intents   []IntentOutcome `json:"intents,omitempty"`   // what became of what the call wanted done; lashd says so
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
