package lashdplugin

import "encoding/json"

// What hooks are given and answer, in the words of the protocol. What a plugin has no use for is kept as it came.

// View is a session as it is settled.
type View struct {
	Session json.RawMessage `json:"session,omitempty"`
	Window  int64           `json:"window,omitempty"` // tokens of the model's context
}

// TurnContext is a turn that is about to begin.
type TurnContext struct {
	TurnID string                     `json:"turnId"`
	View   *View                      `json:"view"`
	Input  []Message                  `json:"input"`
	Inputs map[string]json.RawMessage `json:"inputs"` // for plugins, by id
}

// PromptContext is what texts for the prompt go by; its input is empty.
type PromptContext = TurnContext

// CheckpointContext is a seam in a turn.
type CheckpointContext struct {
	TurnID string `json:"turnId"`
	Kind   string `json:"kind"` // afterWork, beforeCompletion
	View   *View  `json:"view"`
}

// ToolCallContext is a call that is about to run.
type ToolCallContext struct {
	TurnID string          `json:"turnId"`
	CallID string          `json:"callId"`
	Parent string          `json:"parent"`
	Tool   string          `json:"tool"`
	Kind   string          `json:"kind"`
	Replay string          `json:"replay"`
	Serial bool            `json:"serial"`
	Args   json.RawMessage `json:"args"`
}

// ToolResultContext is a call that has run.
type ToolResultContext struct {
	ToolCallContext
	Attempt    int    `json:"attempt"`
	Output     Output `json:"output"`
	DurationMs int64  `json:"durationMs"`
}

// TurnSummary is what a turn came to.
type TurnSummary struct {
	TurnID  string          `json:"turnId"`
	Report  json.RawMessage `json:"report"`
	Window  int64           `json:"window"`
	Context int64           `json:"context"`
}

// StreamChunk is a piece of text that comes in. Abort: the reply has said enough.
type StreamChunk struct {
	Text      string   `json:"text"`
	Reasoning []string `json:"reasoning,omitempty"`
	Events    []Event  `json:"events,omitempty"`
	Abort     bool     `json:"abort,omitempty"`
}

// StreamEnd is why a stream has ended: complete, aborted, cancelled, providerError, attemptReset.
type StreamEnd struct {
	Reason string `json:"reason"`
}

// Response is a complete reply.
type Response struct {
	Parts  []Part  `json:"parts"`
	Stop   string  `json:"stop,omitempty"`
	Events []Event `json:"events,omitempty"`
}

// ConfigChange is a change of settings; Config is what the hooks before made of it.
type ConfigChange struct {
	Previous json.RawMessage `json:"previous"`
	Current  json.RawMessage `json:"current"`
	Config   json.RawMessage `json:"config"`
}

// LifecycleEvent is turnFinalized, turnPersisted, sessionRestored or sessionConfigChanged.
type LifecycleEvent struct {
	Kind     string          `json:"kind"`
	Report   json.RawMessage `json:"report"`
	View     *View           `json:"view"`
	Previous json.RawMessage `json:"previous"`
	Current  json.RawMessage `json:"current"`
}

// PreparedContext is what the model sees of the past, and tools that are added for the turn.
type PreparedContext struct {
	View        *View     `json:"view,omitempty"` // not in answers
	Messages    []Message `json:"messages"`
	Prompts     []Prompt  `json:"prompts,omitempty"`
	WithoutBase bool      `json:"withoutBase,omitempty"`
	Tools       []Tool    `json:"tools,omitempty"`
}

// CompactRequest asks for a summary.
type CompactRequest struct {
	View         *View  `json:"view"`
	Instructions string `json:"instructions"`
}

// Message is one of a conversation. Content stands for one part of text, in messages of plugins.
type Message struct {
	Role    string          `json:"role"`
	Content string          `json:"content,omitempty"`
	Parts   []Part          `json:"parts,omitempty"`
	Origin  json.RawMessage `json:"origin,omitempty"`
}

// Part is a piece of a message: text, prose, commentary, reasoning, toolCall, toolResult, ...
type Part struct {
	Kind       string          `json:"kind"`
	Text       string          `json:"text,omitempty"`
	Call       json.RawMessage `json:"call,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Attachment json.RawMessage `json:"attachment,omitempty"`
	Replay     json.RawMessage `json:"replay,omitempty"`
	Route      string          `json:"route,omitempty"`
	Prune      json.RawMessage `json:"prune,omitempty"`
}

// Prompt is a text for the system prompt, in the slot guidance and the like.
type Prompt struct {
	Slot     string   `json:"slot"`
	Title    string   `json:"title,omitempty"`
	Priority int      `json:"priority,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	Content  string   `json:"content"`
}

// Node is an entry of history.
type Node struct {
	Message *Message        `json:"message,omitempty"`
	Plugin  json.RawMessage `json:"plugin,omitempty"`
}

// Tool is what the model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input,omitempty"` // JSON Schema of the arguments
	Kind        string          `json:"kind,omitempty"`
	Contract    struct {
		Replay    string `json:"replay"` // empty: never
		Serial    bool   `json:"serial,omitempty"`
		TimeoutMs int64  `json:"timeoutMs,omitempty"`
	} `json:"contract"`
}

// Output is what a call of a tool came to.
type Output struct {
	Status    string          `json:"status"`
	Text      string          `json:"text,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
	Failure   *Failure        `json:"failure,omitempty"`
	Artifact  json.RawMessage `json:"artifact,omitempty"`
	Change    json.RawMessage `json:"change,omitempty"`
	Exhausted bool            `json:"exhausted,omitempty"`
}

// Failure is why a call has failed.
type Failure struct {
	Class   string          `json:"class"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Source  string          `json:"source"`
	Retry   bool            `json:"retry,omitempty"`
	AfterMs int64           `json:"retryAfterMs,omitempty"`
	Raw     json.RawMessage `json:"raw,omitempty"`
}

// Result is an output, and what becomes of the turn: {"kind": "finish", "value": ...} and the like.
type Result struct {
	Output  Output          `json:"output"`
	Control json.RawMessage `json:"control,omitempty"`
}

// OperationResult is what an operation came to. A query has an output only; Queue is turns.
type OperationResult struct {
	Output json.RawMessage   `json:"output,omitempty"`
	Events []json.RawMessage `json:"events,omitempty"`
	Queue  []json.RawMessage `json:"queue,omitempty"`
}

// CellReply is what a code cell came to.
type CellReply struct {
	Printed string          `json:"printed,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
	Error   string          `json:"error,omitempty"`
	Control json.RawMessage `json:"control,omitempty"`
}
