package lashdplugin

import (
	"cmp"
	"encoding/json"
	"maps"
)

// JSON is what a plugin decodes by itself, if it has a use for it. Object has few uses; docs/plugins.md tells what is in it.
type (
	JSON   = json.RawMessage
	Object = map[string]any
	None   = struct{}
)

// Method is what lashd asks: it gives a C and wants an A.
type Method[C, A any] struct{ key, member string }

// The hooks, and what else On takes. A hook that answers with what it was given leaves all as it was.
var (
	BeforeTurn        = Method[Turn, Directives]{"hook beforeTurn", "directives"}
	BeforeToolCall    = Method[ToolCall, Directives]{"hook beforeToolCall", "directives"}
	AfterToolCall     = Method[ToolCall, Directives]{"hook afterToolCall", "directives"}
	Checkpoint        = Method[Turn, Directives]{"hook checkpoint", "directives"}
	AfterTurn         = Method[Turn, Directives]{"hook afterTurn", "directives"}
	Prompt            = Method[Turn, []PromptText]{"hook prompt", "prompts"}
	AssistantStream   = Method[StreamChunk, StreamChunk]{"hook assistantStream", ""}
	AssistantResponse = Method[Response, Response]{"hook assistantResponse", ""}
	StreamFinished    = Method[StreamEnd, None]{"hook streamFinished", ""}
	ProjectToolResult = Method[ToolCall, Output]{"hook projectToolResult", "output"}
	ConfigChanged     = Method[ConfigChange, JSON]{"hook configChanged", "config"} // the settings
	Event             = Method[Turn, None]{"hook event", ""}
	TransformContext  = Method[PreparedContext, Preparation]{"hook transformContext", ""}
	Compact           = Method[Turn, []Object]{"hook compact", "nodes"} // {"message": Message} and the like

	ToolList     = Method[None, []ToolManifest]{"tool/list", "data"} // all tools, for a list that changes
	Opened       = Method[None, None]{"session/open", ""}            // a session is opened
	Restored     = Method[None, None]{"snapshot/restore", ""}        // it has other state now
	Closed       = Method[None, None]{"session/close", ""}           // nothing more is asked in it
	CodeExecute  = Method[string, CodeReply]{"code/execute", ""}     // runs a code cell
	CodeSnapshot = Method[None, []byte]{"code/snapshot", "state"}    // what cells have made
	CodeRestore  = Method[[]byte, None]{"code/restore", ""}          // takes it back
)

// What hooks are given, in the words of the protocol.
type (
	// Turn is where a turn is. View is {session, window, turnOptions}; Kind is that of a checkpoint or an event.
	Turn struct {
		TurnID, Kind, Instructions      string
		Unasked                         bool
		View, Report, Previous, Current JSON
		Input                           []Message
		Inputs                          map[string]JSON // for plugins, by id
		Window, Context                 int64           // tokens
	}
	// ToolCall is a call that is about to run, or that has run.
	ToolCall struct {
		TurnID, CallID, Parent, Tool, Kind, Replay string
		Serial                                     bool
		Args                                       JSON
		Output                                     Output // this and the others: once it has run
		Attempt                                    int
		DurationMs                                 int64
	}
	// ConfigChange is a change of settings; Config is what the hooks before made of it.
	ConfigChange struct{ Previous, Current, Config JSON }
	// StreamEnd is why a stream has ended: complete, aborted, cancelled, providerError, attemptReset.
	StreamEnd struct{ Reason string }
	// StreamChunk is a piece of text that comes in. Abort: the reply has said enough.
	StreamChunk struct {
		Text      string   `json:"text"`
		Reasoning []string `json:"reasoning,omitempty"`
		Events    []Object `json:"events,omitempty"`
		Abort     bool     `json:"abort,omitempty"`
	}
	// Response is a complete reply.
	Response struct {
		Parts  []Part   `json:"parts"`
		Stop   string   `json:"stop,omitempty"`
		Events []Object `json:"events,omitempty"`
	}
	// PreparedContext is what a turn is prepared from, and what others have made of it.
	PreparedContext struct {
		View JSON
		Preparation
	}
	// Preparation is what the model sees of the past, and tools that are added for the turn.
	Preparation struct {
		Messages    []Message      `json:"messages"`
		Prompts     []PromptText   `json:"prompts,omitempty"`
		WithoutBase bool           `json:"withoutBase,omitempty"`
		Tools       []ToolManifest `json:"tools,omitempty"`
	}
	// Message is one of a conversation. Content stands for one part of text, in messages of plugins.
	Message struct {
		Role    string `json:"role"`
		Content string `json:"content,omitempty"`
		Parts   []Part `json:"parts,omitempty"`
		Origin  JSON   `json:"origin,omitempty"`
	}
	// Part is a piece of a message: text, prose, commentary, reasoning, toolCall, toolResult, ...
	Part struct {
		Kind       string `json:"kind"`
		Text       string `json:"text,omitempty"`
		Call       JSON   `json:"call,omitempty"`
		Result     JSON   `json:"result,omitempty"`
		Attachment JSON   `json:"attachment,omitempty"`
		Replay     JSON   `json:"replay,omitempty"`
		Route      string `json:"route,omitempty"`
		Prune      JSON   `json:"prune,omitempty"`
	}
	// PromptText is a text for the system prompt, in the slot guidance and the like.
	PromptText struct {
		Slot     string   `json:"slot"`
		Title    string   `json:"title,omitempty"`
		Priority int      `json:"priority,omitempty"`
		Tools    []string `json:"tools,omitempty"`
		Content  string   `json:"content"`
	}
	// ToolManifest is what the model may call.
	ToolManifest struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Input       any      `json:"input,omitempty"` // JSON Schema of the arguments
		Kind        string   `json:"kind,omitempty"`
		Contract    Contract `json:"contract"`
	}
	// Contract says how a tool may be called. Replay is never, unless it is said.
	Contract struct {
		Replay    replay `json:"replay"`
		Serial    bool   `json:"serial,omitempty"`
		TimeoutMs int64  `json:"timeoutMs,omitempty"`
	}
	// Output is what a call of a tool came to.
	Output struct {
		Status    string `json:"status"`
		Text      string `json:"text,omitempty"`
		Value     JSON   `json:"value,omitempty"`
		Failure   JSON   `json:"failure,omitempty"`
		Artifact  JSON   `json:"artifact,omitempty"`
		Change    JSON   `json:"change,omitempty"`
		Exhausted bool   `json:"exhausted,omitempty"`
	}
	// Result is an output, and what becomes of the turn: {"kind": "finish", "value": ...} and the like.
	Result struct {
		Output  Output `json:"output"`
		Control Object `json:"control,omitempty"`
	}
	// Outcome is what an operation came to. A query has an output only; Queue is turns.
	Outcome struct {
		Output any      `json:"output,omitempty"`
		Events []Object `json:"events,omitempty"`
		Queue  []Object `json:"queue,omitempty"`
	}
	// CodeReply is what a code cell came to.
	CodeReply struct {
		Printed string `json:"printed,omitempty"`
		Value   any    `json:"value,omitempty"`
		Error   string `json:"error,omitempty"`
		Control Object `json:"control,omitempty"`
	}
)

type replay string

func (r replay) MarshalText() ([]byte, error) { return []byte(cmp.Or(r, "never")), nil }

// Directives are what a hook wants done. The functions below make one; slices.Concat puts several together.
type Directives []Object

// Succeed is a success that the model reads as text.
func Succeed(text string) Output { return Output{Status: "success", Text: text} }

// Fail is a failure, of a class such as execution or permissionDenied.
func Fail(class, code, message string) Output {
	failure, _ := json.Marshal(Object{"class": class, "code": code, "message": message, "source": "plugin"}) // it is text
	return Output{Status: "failure", Text: message, Failure: failure}
}

// Deny denies a call; the model reads why.
func Deny(message string) Directives {
	return ShortCircuit(Fail("permissionDenied", "denied", message))
}

// ShortCircuit gives a call a result: instead of running it, or in place of its own.
func ShortCircuit(out Output) Directives {
	return Directives{{"kind": "short_circuit_tool", "output": out}}
}

// ReplaceArgs runs a call with other arguments.
func ReplaceArgs(args any) Directives { return Directives{{"kind": "replace_tool_args", "args": args}} }

// AskFirst has a person asked before a call runs; more may be deadlineMs, and default, which is then reject or allow.
func AskFirst(reason string, more Object) Directives {
	approval := Object{"reason": reason}
	maps.Copy(approval, more)
	return Directives{{"kind": "require_approval", "approval": approval}}
}

// Abort ends the turn, or fails the call.
func Abort(code, message string) Directives {
	return Directives{{"kind": "abort_turn", "code": code, "message": message}}
}

// Enqueue lets messages into the conversation.
func Enqueue(messages ...Message) Directives {
	return Directives{{"kind": "enqueue_messages", "messages": messages}}
}

// Say is a message of a user.
func Say(text string) Message { return Message{Role: "user", Content: text} }

// CreateSession creates a session beside this one; session is what session/new takes.
func CreateSession(session any) Directives {
	return Directives{{"kind": "create_session", "session": session}}
}

// Tell tells observers of events: a status (kind, key, label, detail), or custom (kind, name, payload).
func Tell(events ...Object) Directives {
	return Directives{{"kind": "emit_runtime_events", "events": events}}
}

// Trace adds a record to the trace.
func Trace(name string, payload any) Directives {
	return Directives{{"kind": "emit_trace", "trace": Object{"name": name, "payload": payload}}}
}

// CompactHistory has history compacted before the next turn begins.
func CompactHistory() Directives { return Directives{{"kind": "compact_history"}} }
