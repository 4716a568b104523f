package plugin

import (
	"encoding/json"

	"lashd/rpc/protocol"
)

// DirectiveKind names an action that a hook requests from the engine. CheckSeam says at which seams each kind is
// allowed.
type DirectiveKind string

const (
	// AbortTurn ends the turn at a turn seam, and fails the call at a tool seam.
	AbortTurn DirectiveKind = "abort_turn"
	// EnqueueMessages adds messages to the conversation.
	EnqueueMessages DirectiveKind = "enqueue_messages"
	// CreateSession creates a session next to this one.
	CreateSession DirectiveKind = "create_session"
	// ReplaceToolArgs changes the arguments of a call. Only before the call.
	ReplaceToolArgs DirectiveKind = "replace_tool_args"
	// ShortCircuitTool gives a call a result: before the call instead of running it, after the call in place of the
	// tool's.
	ShortCircuitTool DirectiveKind = "short_circuit_tool"
	// RequireApproval asks a person before the call runs. Only before the call.
	RequireApproval DirectiveKind = "require_approval"
	// EmitEvents sends events to observers of the session.
	EmitEvents DirectiveKind = "emit_runtime_events"
	// EmitTrace adds a record to the trace.
	EmitTrace DirectiveKind = "emit_trace"
	// CompactHistory compacts the history before the next turn starts. Only after a turn.
	CompactHistory DirectiveKind = "compact_history"
)

// Directive is one action that a hook requests. Kind selects which of the other fields are used. The functions below
// build directives; CheckSeam rejects incomplete ones.
type Directive struct {
	Kind     DirectiveKind              `json:"kind"`
	Code     string                     `json:"code,omitempty"`    // of AbortTurn
	Message  string                     `json:"message,omitempty"` // of AbortTurn
	Messages []Message                  `json:"messages,omitempty"`
	Session  *protocol.SessionNewParams `json:"session,omitempty"`
	Args     json.RawMessage            `json:"args,omitempty"`
	Output   *protocol.ToolOutput       `json:"output,omitempty"`
	Approval *Approval                  `json:"approval,omitempty"`
	Events   []RuntimeEvent             `json:"events,omitempty"`
	Trace    *TraceEvent                `json:"trace,omitempty"`
}

// Message is a message from a plugin for the conversation. Its role must be user or system.
type Message struct {
	Role    protocol.Role    `json:"role"`
	Content string           `json:"content,omitempty"`
	Parts   []protocol.Part  `json:"parts,omitempty"`  // after Content
	Origin  *protocol.Origin `json:"origin,omitempty"` // only Transient is used; lashd fills in the rest
}

// Approval asks a person to allow a call. Default is the answer if the deadline passes: anything but allow rejects the
// call.
type Approval struct {
	Reason     string                `json:"reason"`
	DeadlineMs int64                 `json:"deadlineMs,omitempty"` // milliseconds from now; 0: the session's default
	Default    protocol.ApprovalMode `json:"default,omitempty"`
}

// RuntimeEvent is an event for observers of a session: a status (Key, Label, Detail), or a custom event of the plugin
// (Name, Payload).
type RuntimeEvent struct {
	Kind    string          `json:"kind"` // status or custom
	Key     string          `json:"key,omitempty"`
	Label   string          `json:"label,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Name    string          `json:"name,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Plugin  string          `json:"plugin,omitempty"` // set by lashd for events of stream and response hooks
}

// TraceEvent becomes the trace record plugin.<plugin id>.<name>.
type TraceEvent struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Owned is a directive with the id of the plugin that returned it.
type Owned struct {
	Plugin string `json:"plugin"`
	Directive
}

// Abort ends the turn, or fails the call if a tool hook returns it. Code is a stable identifier; message is for people.
func Abort(code, message string) Directive {
	return Directive{Kind: AbortTurn, Code: code, Message: message}
}

// Enqueue adds messages to the conversation.
func Enqueue(messages ...Message) Directive {
	return Directive{Kind: EnqueueMessages, Messages: messages}
}

// ReplaceArgs runs the call with args. Hooks that have seen the old arguments see the new ones once and may still
// reject them.
func ReplaceArgs(args json.RawMessage) Directive {
	return Directive{Kind: ReplaceToolArgs, Args: args}
}

// ShortCircuit gives the call the result out. Before the call the tool does not run; after it, out replaces the tool's
// result.
func ShortCircuit(out protocol.ToolOutput) Directive {
	return Directive{Kind: ShortCircuitTool, Output: &out}
}

// AskFirst asks a person to allow the call before it runs. The approval prompt shows reason.
func AskFirst(reason string) Directive {
	return Directive{Kind: RequireApproval, Approval: &Approval{Reason: reason}}
}

// Tell sends events to observers of the session.
func Tell(events ...RuntimeEvent) Directive { return Directive{Kind: EmitEvents, Events: events} }

// TraceWith adds a record to the trace.
func TraceWith(name string, payload json.RawMessage) Directive {
	return Directive{Kind: EmitTrace, Trace: &TraceEvent{Name: name, Payload: payload}}
}

// Compact compacts the history before the next turn starts.
func Compact() Directive { return Directive{Kind: CompactHistory} }

// NewSession returns a request for a session at start, with the default plugins and tools of a new session. Set further
// fields on the result. Note the difference to a JSON request, which inherits the plugins of its start point by
// default.
func NewSession(start protocol.SessionStart) *protocol.SessionNewParams {
	return &protocol.SessionNewParams{Start: start, PluginSource: protocol.PluginsFresh}
}

// NewChild is NewSession for a child of the session that asks.
func NewChild(start protocol.SessionStart) *protocol.SessionNewParams {
	p := NewSession(start)
	p.Relation.Kind = protocol.RelationChild
	return p
}
