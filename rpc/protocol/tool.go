package protocol

import "encoding/json"

// ToolManifest describes a tool. The model sees its name, description and input schema.
type ToolManifest struct {
	ID          string                     `json:"id,omitempty"`    // permanent id; absent: its name
	Name        string                     `json:"name"`            // name for the model; unique in a session
	Title       string                     `json:"title,omitempty"` // name for people
	Description string                     `json:"description"`
	Input       json.RawMessage            `json:"input,omitempty"`      // JSON Schema of the arguments; absent: any object
	Kind        ToolKind                   `json:"kind,omitempty"`       // for display
	Activation  ToolActivation             `json:"activation,omitempty"` // absent: always
	Like        string                     `json:"like,omitempty"`       // name of a similar tool; ask and deny rules for that tool also apply to this one
	Bindings    map[string]json.RawMessage `json:"bindings,omitempty"`   // the tool's form in other environments, such as a programming language
}

// ToolActivation says whether the model may call a tool.
type ToolActivation string

const (
	ActivateAlways   ToolActivation = "always"   // the model may call it
	ActivateDirect   ToolActivation = "direct"   // the model may call it, but code cells may not: for tools that call tools
	ActivateInternal ToolActivation = "internal" // the model does not see the tool
)

// ToolKind groups tools for display, with the names of the Agent Client Protocol.
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

// ToolContract says how lashd may run a tool.
type ToolContract struct {
	Replay    Replay            `json:"replay"`
	Serial    bool              `json:"serial,omitempty"`    // never in parallel with other calls of its batch
	TimeoutMs int64             `json:"timeoutMs,omitempty"` // 0: no limit of its own
	Retry     *ToolRetry        `json:"retry,omitempty"`     // for failures marked safe to retry; requires a replay other than never
	MayDefer  bool              `json:"mayDefer,omitempty"`  // may return a pending result
	Varying   []string          `json:"varying,omitempty"`   // arguments that allowSession and allowAlways ignore, such as the contents of a file; absent: none
	Input     json.RawMessage   `json:"input,omitempty"`     // JSON Schema of the arguments; absent: the manifest's, or any object
	Output    json.RawMessage   `json:"output,omitempty"`    // JSON Schema of the result's value; absent: unknown
	Examples  []json.RawMessage `json:"examples,omitempty"`  // example arguments
}

// ToolRetry sets how often lashd tries a call. The delay between attempts doubles from baseMs to capMs.
type ToolRetry struct {
	Attempts int   `json:"maxAttempts"` // including the first attempt
	BaseMs   int64 `json:"baseMs"`
	CapMs    int64 `json:"capMs"`
}

// Replay says whether lashd may repeat a call whose result was lost.
type Replay string

const (
	ReplayNever      Replay = "never"      // run at most once; the default
	ReplaySafe       Replay = "safe"       // repeating it does no harm
	ReplayIdempotent Replay = "idempotent" // repeating it has no further effect
)

// ToolRecord is a tool of a session with its settings.
type ToolRecord struct {
	ToolManifest
	Source       string           `json:"source"` // the plugin or client that provides it; empty: no provider
	Contract     ToolContract     `json:"contract"`
	Revision     Digest           `json:"revision"` // changes with manifest and contract
	Tokens       int              `json:"estimatedTokens"`
	Member       bool             `json:"member"`   // in the model's catalog
	Orphan       bool             `json:"orphan"`   // it has no provider any more; its settings are kept
	Document     bool             `json:"document"` // described in the prompt
	Availability ToolAvailability `json:"availability"`
}

// ToolState holds the tool settings of a session. Generation increases with each change. A change with an older generation
// fails.
type ToolState struct {
	Generation int64                  `json:"generation"`
	Tools      map[string]ToolSetting `json:"tools"` // by tool id
}

// ToolSetting holds the settings of one tool in a session. They belong to the tool's id; another provider of the same id gets the
// same settings.
type ToolSetting struct {
	Manifest ToolManifest     `json:"manifest"`           // last known manifest, without the schema
	Orphaned bool             `json:"orphaned,omitempty"` // it has no provider any more
	Member   *bool            `json:"member,omitempty"`   // in the model's catalog; absent: true
	Override ToolAvailability `json:"override,omitempty"` // set by tool/setAvailability
}

// IsMember reports whether the model may call the tool when it has a provider.
func (s ToolSetting) IsMember() bool { return s.Member == nil || *s.Member }

// ToolAvailability says how a tool is offered to the model. Each level includes the ones before it.
type ToolAvailability string

const (
	ToolOff        ToolAvailability = "off"        // not offered
	ToolSearchable ToolAvailability = "searchable" // the model can find it, but not call it
	ToolCallable   ToolAvailability = "callable"   // the model can call it
	ToolShowcased  ToolAvailability = "showcased"  // also described in the prompt; the default
)

// ToolCall is a request to run a tool.
type ToolCall struct {
	CallID    CallID          `json:"callId"`
	Name      string          `json:"name"`
	ToolTitle string          `json:"toolTitle,omitempty"` // the tool's name for people, if it had one at the time of the call
	Args      json.RawMessage `json:"args"`
	Parent    CallID          `json:"parent,omitempty"` // the call that made this one; absent: the model made it
}

// ToolResult is the result of a tool call in the conversation.
type ToolResult struct {
	CallID     CallID     `json:"callId"`
	Name       string     `json:"name"`
	Output     ToolOutput `json:"output"`
	DurationMs int64      `json:"durationMs,omitempty"`
	Order      int        `json:"order"` // position in the order of completion within its batch
}

// OutputStatus says how a tool call ended.
type OutputStatus string

const (
	OutputSuccess   OutputStatus = "success"
	OutputFailure   OutputStatus = "failure"
	OutputCancelled OutputStatus = "cancelled"
	OutputUnknown   OutputStatus = "unknown" // it started, and its outcome is unknown
)

// ToolOutput is the output of a tool call.
type ToolOutput struct {
	Status    OutputStatus    `json:"status"`
	Text      string          `json:"text,omitempty"`  // text for the model
	Value     json.RawMessage `json:"value,omitempty"` // structured result for clients and code
	Failure   *ToolFailure    `json:"failure,omitempty"`
	Artifact  *ArtifactRef    `json:"artifact,omitempty"`  // the full output, if text is only part of it
	Change    *FileChange     `json:"change,omitempty"`    // file change of the call
	Exhausted bool            `json:"exhausted,omitempty"` // all retries were used
	Refusal   *SandboxRefusal `json:"refusal,omitempty"`   // the sandbox seems to have refused something
	Intents   []IntentOutcome `json:"intents,omitempty"`   // outcomes of the call's intents; set by lashd

	Attachments []Attachment `json:"attachments,omitempty"` // files for the model, with the checks and limits of an input
}

// SandboxRefusal says that the sandbox seems to have refused something to a call that has ended. A client can offer to run the call
// once with more hosts or outside the sandbox: by tool/call with the tool's name, the arguments below as args, and tell set.
type SandboxRefusal struct {
	What      string          `json:"what"`                // one sentence for people, such as: The command has no network.
	Mode      SandboxMode     `json:"mode"`                // the mode in which the call ran
	Hosts     []RefusedHost   `json:"hosts,omitempty"`     // each host that the proxy of the command refused, in order, at most 100; absent: the rest is guessed from the output
	Rule      *ApprovalRule   `json:"rule,omitempty"`      // a rule that would allow such a call outside the sandbox without a question
	Tool      string          `json:"tool,omitempty"`      // the tool to call again; absent: that of the call
	WithHosts *HostsRetry     `json:"withHosts,omitempty"` // runs the call again in its sandbox with more hosts; absent: hosts would not help, or a rule denies them
	Retry     json.RawMessage `json:"retry,omitempty"`     // arguments that run the call outside the sandbox; absent: no tool can run it again
}

// HostsRetry runs a call again that lacked hosts.
type HostsRetry struct {
	Hosts []string        `json:"hosts"` // what the call reaches in addition, to show to people
	Retry json.RawMessage `json:"retry"` // arguments of the call
}

// ArtifactRef refers to a stored artifact.
type ArtifactRef struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`
	Type   string `json:"type,omitempty"`
}

// FileChange is an edit of a workspace file, for display.
type FileChange struct {
	Path    string `json:"path"`
	Diff    string `json:"diff"`    // unified
	Added   int    `json:"added"`   // lines
	Removed int    `json:"removed"` // lines
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

// FailureSource says which part of the system failed.
type FailureSource string

const (
	FromRuntime      FailureSource = "runtime"
	FromTool         FailureSource = "tool"
	FromPlugin       FailureSource = "plugin"
	FromPolicy       FailureSource = "policy"
	FromCancellation FailureSource = "cancellation"
)

// ToolFailure says why a tool call failed.
type ToolFailure struct {
	Class   FailureClass    `json:"class"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Source  FailureSource   `json:"source"`
	Retry   bool            `json:"retry,omitempty"`        // a retry is safe and may succeed
	AfterMs int64           `json:"retryAfterMs,omitempty"` // minimum delay before a retry
	Raw     json.RawMessage `json:"raw,omitempty"`
}

// Succeed returns a successful output with text for the model.
func Succeed(text string) ToolOutput { return ToolOutput{Status: OutputSuccess, Text: text} }

// Fail returns a failed output.
func Fail(class FailureClass, code, message string, source FailureSource) ToolOutput {
	return ToolOutput{
		Status:  OutputFailure,
		Text:    message,
		Failure: &ToolFailure{Class: class, Code: code, Message: message, Source: source},
	}
}

// ControlKind says how a tool redirects its turn.
type ControlKind string

const (
	ControlFinish      ControlKind = "finish"      // end the turn with value
	ControlFail        ControlKind = "fail"        // end the turn with an error
	ControlSwitchFrame ControlKind = "switchFrame" // continue in a new frame
)

// ToolControl ends or redirects a turn. Of several successful calls in a batch, the first call's control counts.
type ToolControl struct {
	Kind  ControlKind     `json:"kind"`
	Value json.RawMessage `json:"value,omitempty"`
	Frame *FrameSwitch    `json:"frame,omitempty"`
}
