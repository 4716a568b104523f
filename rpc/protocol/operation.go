package protocol

import "encoding/json"

// OperationKind says what an operation may do.
type OperationKind string

const (
	OperationQuery   OperationKind = "query"   // reads; may run beside a turn
	OperationCommand OperationKind = "command" // changes something; never runs beside a turn
	OperationTask    OperationKind = "task"    // a command that takes its time, and can be cancelled
)

// SessionRule says whether an operation is called with a session.
type SessionRule string

const (
	SessionRequired  SessionRule = "required"
	SessionOptional  SessionRule = "optional"
	SessionForbidden SessionRule = "forbidden"
)

// OperationInfo describes an operation that a plugin offers to clients. Its name is unique in a session.
type OperationInfo struct {
	Name        string          `json:"name"`
	Plugin      string          `json:"plugin"`
	Description string          `json:"description,omitempty"`
	Kind        OperationKind   `json:"kind"`
	Session     SessionRule     `json:"session"`
	Input       json.RawMessage `json:"inputSchema,omitempty"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
}
