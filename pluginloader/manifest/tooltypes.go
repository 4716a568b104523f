package manifest

import (
	"encoding/json"

	"lashd/rpc/protocol"
)

// OperationKind is the kind of an operation.
type OperationKind protocol.OperationKind

func (OperationKind) words() []string { return []string{"query", "command", "task"} }

// SessionRule decides whether calls of an operation need a session.
type SessionRule protocol.SessionRule

func (SessionRule) words() []string { return []string{"required", "optional", "forbidden"} }

// Replay decides whether a call may be repeated if its result was lost.
type Replay protocol.Replay

func (Replay) words() []string { return []string{"never", "safe", "idempotent"} }

// ToolKind is the kind of a tool. Approval and clients use it.
type ToolKind protocol.ToolKind

func (ToolKind) words() []string {
	return []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"}
}

// Tool is a tool for the model. With a command, a call runs that command; without one, the process runs it.
//
// Elements of the command may contain parameters as {name}; {{name}} is the literal text {name}. Each element stays one argument,
// whatever the values contain. An element with an absent optional parameter is omitted. An element that is only a parameter of type
// array becomes one argument for each string.
type Tool struct {
	Name        string            `json:"name" form:"tool"`                                            // name for the model; unique in a session
	Description string            `json:"description" min:"1" max:"16384"`                             // description for the model
	Kind        ToolKind          `json:"kind,omitempty"`                                              // kind; approval and clients use it
	Command     []string          `json:"command,omitempty" min:"1" max:"256" each:"8192" subst:"own"` // program and arguments
	Shell       bool              `json:"shell,omitempty"`                                             // the only element of command is a script for sh; parameters are environment variables PARAM_name
	Parameters  []Parameter       `json:"parameters,omitempty" max:"64"`                               // parameters of the command
	In          Place             `json:"in,omitempty"`                                                // directory in which the command runs; absent: workspace
	Env         map[string]string `json:"env,omitempty" max:"64" form:"env" each:"8192" subst:"yes"`   // environment variables of the command
	PassEnv     []string          `json:"passEnv,omitempty" max:"64" form:"env"`                       // names of variables to pass from lashd's environment
	Input       json.RawMessage   `json:"input,omitempty" max:"65536"`                                 // JSON Schema of the arguments, for a tool of the process; absent: any object
	Output      json.RawMessage   `json:"output,omitempty" max:"65536"`                                // JSON Schema of the result, for a tool of the process
	Replay      Replay            `json:"replay,omitempty"`                                            // whether a call may be repeated after a crash; absent: never
	Serial      bool              `json:"serial,omitempty"`                                            // whether it never runs at the same time as other calls of its batch
	TimeoutMs   int64             `json:"timeoutMs,omitempty" min:"1" max:"86400000"`                  // timeout of a call, in ms
}

// Parameter is a parameter of a command.
type Parameter struct {
	Name        string          `json:"name" form:"parameter"`                        // name in the command; unique in the tool
	Type        ParameterType   `json:"type"`                                         // type
	Description string          `json:"description,omitempty" max:"4096"`             // description for the model
	Required    bool            `json:"required,omitempty"`                           // whether calls without it fail
	Enum        []string        `json:"enum,omitempty" min:"1" max:"256" each:"1024"` // allowed values of a string
	Pattern     string          `json:"pattern,omitempty" max:"1024"`                 // RE2 expression that must match the whole string
	Min         *float64        `json:"min,omitempty"`                                // least number, or least count of characters or elements
	Max         *float64        `json:"max,omitempty"`                                // greatest number, or greatest count of characters or elements
	Default     json.RawMessage `json:"default,omitempty" max:"8192"`                 // value if the parameter is absent
	Dash        bool            `json:"dash,omitempty"`                               // whether a string may start with -, which the command could take for an option
}
