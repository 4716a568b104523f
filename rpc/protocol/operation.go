package protocol

import "encoding/json"

// OperationKind says what an operation may do and when it may run.
type OperationKind string

const (
	OperationQuery   OperationKind = "query"   // only reads; may run during a turn
	OperationCommand OperationKind = "command" // changes something; never runs during a turn
	OperationTask    OperationKind = "task"    // a long-running command that can be cancelled
)

// SessionRule says whether an operation requires a session.
type SessionRule string

const (
	SessionRequired  SessionRule = "required"
	SessionOptional  SessionRule = "optional"
	SessionForbidden SessionRule = "forbidden"
)

// OperationInfo describes an operation of a plugin. Its name is unique in a session.
type OperationInfo struct {
	Name        string          `json:"name"`
	Plugin      string          `json:"plugin"`
	Description string          `json:"description,omitempty"`
	Kind        OperationKind   `json:"kind"`
	Session     SessionRule     `json:"session"`
	Input       json.RawMessage `json:"inputSchema,omitempty"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
}
