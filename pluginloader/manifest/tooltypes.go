package manifest

import (
	"encoding/json"

	"lashd/rpc/protocol"
)

// OperationKind says what an operation does.
type OperationKind protocol.OperationKind

func (OperationKind) words() []string { return []string{"query", "command", "task"} }

// SessionRule says whether an operation is called in a session.
type SessionRule protocol.SessionRule

func (SessionRule) words() []string { return []string{"required", "optional", "forbidden"} }

// Replay says whether a call that was started, and whose result was lost, may be made again.
type Replay protocol.Replay

func (Replay) words() []string { return []string{"never", "safe", "idempotent"} }

// ToolKind groups tools for display.
type ToolKind protocol.ToolKind

func (ToolKind) words() []string {
	return []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"}
}

// Tool is what the model may call. With a command it is that command; without one the process runs it.
//
// An element of the command may have parameters in it, as {name}; {{name}} stands for {name} itself. Each element stays one
// argument, whatever the values hold. One with an optional parameter that is absent is left out; one that is nothing but a
// parameter of the type array becomes an argument for each of its strings.
type Tool struct {
	Name        string            `json:"name" form:"tool"`                                            // what the model calls it; unique in a session
	Description string            `json:"description" min:"1" max:"16384"`                             // what the model is told of it
	Kind        ToolKind          `json:"kind,omitempty"`                                              // how clients should show it
	Command     []string          `json:"command,omitempty" min:"1" max:"256" each:"8192" subst:"own"` // the program and its arguments
	Shell       bool              `json:"shell,omitempty"`                                             // the one element of the command is a script for sh, which finds parameters only in its environment, as PARAM_name
	Parameters  []Parameter       `json:"parameters,omitempty" max:"64"`                               // what the command takes
	In          Place             `json:"in,omitempty"`                                                // the directory in which the command runs
	Env         map[string]string `json:"env,omitempty" max:"64" form:"env" each:"8192" subst:"yes"`   // variables of the command's environment
	PassEnv     []string          `json:"passEnv,omitempty" max:"64" form:"env"`                       // names of variables that the command gets from the environment of lashd
	Input       json.RawMessage   `json:"input,omitempty" max:"65536"`                                 // JSON Schema of the arguments, for a tool of the process; absent: any object
	Output      json.RawMessage   `json:"output,omitempty" max:"65536"`                                // JSON Schema of the result, for a tool of the process
	Replay      Replay            `json:"replay,omitempty"`                                            // whether a call may be made again after a crash; absent: never
	Serial      bool              `json:"serial,omitempty"`                                            // never beside other calls of its batch
	TimeoutMs   int64             `json:"timeoutMs,omitempty" min:"1" max:"86400000"`                  // how long a call may take
}

// Parameter is a value that a command takes.
type Parameter struct {
	Name        string          `json:"name" form:"parameter"`                        // as in the command; unique in its tool
	Type        ParameterType   `json:"type"`                                         // what it is
	Description string          `json:"description,omitempty" max:"4096"`             // what the model is told of it
	Required    bool            `json:"required,omitempty"`                           // a call without it fails
	Enum        []string        `json:"enum,omitempty" min:"1" max:"256" each:"1024"` // the values there are, of strings
	Pattern     string          `json:"pattern,omitempty" max:"1024"`                 // a regular expression (RE2) that all of a string fits
	Min         *float64        `json:"min,omitempty"`                                // the least number, the fewest characters or elements
	Max         *float64        `json:"max,omitempty"`                                // the greatest number, the most characters or elements
	Default     json.RawMessage `json:"default,omitempty" max:"8192"`                 // the value if it is absent
	Dash        bool            `json:"dash,omitempty"`                               // a string may begin with -, although the command may take it for an option
}
