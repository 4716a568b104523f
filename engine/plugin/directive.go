package plugin

import (
	"encoding/json"

	"lashd/rpc/protocol"
)

// DirectiveKind names what a hook wants done.
type DirectiveKind string

const (
	AbortTurn        DirectiveKind = "abort_turn"          // at a turn seam: ends the turn; at a tool seam: fails the call
	EnqueueMessages  DirectiveKind = "enqueue_messages"    // lets messages into the conversation
	CreateSession    DirectiveKind = "create_session"      // creates a session beside this one
	ReplaceToolArgs  DirectiveKind = "replace_tool_args"   // before a call: other arguments
	ShortCircuitTool DirectiveKind = "short_circuit_tool"  // before a call: a result without running it; after: another result
	RequireApproval  DirectiveKind = "require_approval"    // before a call: a person is asked first
	EmitEvents       DirectiveKind = "emit_runtime_events" // tells observers
	EmitTrace        DirectiveKind = "emit_trace"          // adds a record to the trace
	CompactHistory   DirectiveKind = "compact_history"     // after the turn: history is compacted before the next one begins
)

// Directive is one thing that a hook wants done. Kind says which of the other fields are set; the functions below make them.
type Directive struct {
	Kind     DirectiveKind              `json:"kind"`
	Code     string                     `json:"code,omitempty"`    // of abort_turn
	Message  string                     `json:"message,omitempty"` // likewise
	Messages []Message                  `json:"messages,omitempty"`
	Session  *protocol.SessionNewParams `json:"session,omitempty"`
	Args     json.RawMessage            `json:"args,omitempty"`
	Output   *protocol.ToolOutput       `json:"output,omitempty"`
	Approval *Approval                  `json:"approval,omitempty"`
	Events   []RuntimeEvent             `json:"events,omitempty"`
	Trace    *TraceEvent                `json:"trace,omitempty"`
}

// Message is what a plugin says. Only the roles user and system may enter a conversation.
type Message struct {
	Role    protocol.Role    `json:"role"`
	Content string           `json:"content,omitempty"`
	Parts   []protocol.Part  `json:"parts,omitempty"`  // after Content
	Origin  *protocol.Origin `json:"origin,omitempty"` // only Transient counts: the rest is the plugin
}

// Approval asks that a person allows a call. Default says what a passed deadline means: reject unless it is allow.
type Approval struct {
	Reason     string                `json:"reason"`
	DeadlineMs int64                 `json:"deadlineMs,omitempty"` // from now; 0: the session's
	Default    protocol.ApprovalMode `json:"default,omitempty"`
}

// RuntimeEvent is news for observers: a status (Key, Label, Detail) or an event of the plugin's own (Name, Payload).
type RuntimeEvent struct {
	Kind    string          `json:"kind"` // status, custom
	Key     string          `json:"key,omitempty"`
	Label   string          `json:"label,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Name    string          `json:"name,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Plugin  string          `json:"plugin,omitempty"` // whose event it is; filled in for events of stream and response hooks
}

// TraceEvent becomes the record plugin.<plugin id>.<name>.
type TraceEvent struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Owned is a directive and the plugin whose it is.
type Owned struct {
	Plugin string `json:"plugin"`
	Directive
}

// Abort ends the turn, or fails the call.
func Abort(code, message string) Directive {
	return Directive{Kind: AbortTurn, Code: code, Message: message}
}

// Enqueue lets messages into the conversation.
func Enqueue(messages ...Message) Directive {
	return Directive{Kind: EnqueueMessages, Messages: messages}
}

// ReplaceArgs runs the call with other arguments.
func ReplaceArgs(args json.RawMessage) Directive {
	return Directive{Kind: ReplaceToolArgs, Args: args}
}

// ShortCircuit gives the call a result: instead of running it, or in place of its own.
func ShortCircuit(out protocol.ToolOutput) Directive {
	return Directive{Kind: ShortCircuitTool, Output: &out}
}

// AskFirst has a person asked before the call runs.
func AskFirst(reason string) Directive {
	return Directive{Kind: RequireApproval, Approval: &Approval{Reason: reason}}
}

// Tell tells observers.
func Tell(events ...RuntimeEvent) Directive { return Directive{Kind: EmitEvents, Events: events} }

// TraceWith adds a record to the trace.
func TraceWith(name string, payload json.RawMessage) Directive {
	return Directive{Kind: EmitTrace, Trace: &TraceEvent{Name: name, Payload: payload}}
}

// Compact has history compacted before the next turn begins.
func Compact() Directive { return Directive{Kind: CompactHistory} }

// NewSession asks for a session that starts there, with plugins and tools as in a new one. Whatever else it shall have is set
// in the request. A request that comes as JSON and says nothing of plugins means that they are as where it starts.
func NewSession(start protocol.SessionStart) *protocol.SessionNewParams {
	return &protocol.SessionNewParams{Start: start, PluginSource: protocol.PluginsFresh}
}

// NewChild is NewSession for a child of the session that asks.
func NewChild(start protocol.SessionStart) *protocol.SessionNewParams {
	p := NewSession(start)
	p.Relation.Kind = protocol.RelationChild
	return p
}
