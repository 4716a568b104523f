package lashdplugin

import "encoding/json"

// Directive is one thing that a hook wants done. The functions below make them.
type Directive struct {
	Kind     string          `json:"kind"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
	Messages []Message       `json:"messages,omitempty"`
	Session  json.RawMessage `json:"session,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	Output   *Output         `json:"output,omitempty"`
	Approval *Approval       `json:"approval,omitempty"`
	Events   []Event         `json:"events,omitempty"`
	Trace    *Trace          `json:"trace,omitempty"`
}

// Approval asks that a person allows a call. Default, after the deadline, is reject unless it is allow.
type Approval struct {
	Reason     string `json:"reason"`
	DeadlineMs int64  `json:"deadlineMs,omitempty"`
	Default    string `json:"default,omitempty"`
}

// Event is news for observers: a status (Key, Label, Detail), or custom (Name, Payload).
type Event struct {
	Kind    string          `json:"kind"`
	Key     string          `json:"key,omitempty"`
	Label   string          `json:"label,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Name    string          `json:"name,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Plugin  string          `json:"plugin,omitempty"`
}

// Trace is a record for the trace.
type Trace struct {
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Succeed is a success that the model reads as text.
func Succeed(text string) Output { return Output{Status: "success", Text: text} }

// Fail is a failure, of a class such as execution or permissionDenied.
func Fail(class, code, message string) Output {
	return Output{Status: "failure", Text: message, Failure: &Failure{Class: class, Code: code, Message: message, Source: "plugin"}}
}

// Deny denies a call; the model reads why.
func Deny(message string) Directive { return ShortCircuit(Fail("permissionDenied", "denied", message)) }

// ShortCircuit gives a call a result: instead of running it, or in place of its own.
func ShortCircuit(out Output) Directive { return Directive{Kind: "short_circuit_tool", Output: &out} }

// ReplaceArgs runs a call with other arguments.
func ReplaceArgs(args json.RawMessage) Directive {
	return Directive{Kind: "replace_tool_args", Args: args}
}

// AskFirst has a person asked before a call runs.
func AskFirst(reason string) Directive {
	return Directive{Kind: "require_approval", Approval: &Approval{Reason: reason}}
}

// Abort ends the turn, or fails the call.
func Abort(code, message string) Directive {
	return Directive{Kind: "abort_turn", Code: code, Message: message}
}

// Enqueue lets messages into the conversation.
func Enqueue(messages ...Message) Directive {
	return Directive{Kind: "enqueue_messages", Messages: messages}
}

// Say is a message of a user.
func Say(text string) Message { return Message{Role: "user", Content: text} }

// CreateSession creates a session beside this one; session is what session/new takes.
func CreateSession(session json.RawMessage) Directive {
	return Directive{Kind: "create_session", Session: session}
}

// Tell tells observers.
func Tell(events ...Event) Directive { return Directive{Kind: "emit_runtime_events", Events: events} }

// TraceWith adds a record to the trace.
func TraceWith(name string, payload json.RawMessage) Directive {
	return Directive{Kind: "emit_trace", Trace: &Trace{Name: name, Payload: payload}}
}

// CompactHistory has history compacted before the next turn begins.
func CompactHistory() Directive { return Directive{Kind: "compact_history"} }
