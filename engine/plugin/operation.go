package plugin

import (
	"context"
	"encoding/json"

	"lashd/rpc/protocol"
)

// OperationCall is one call of an operation.
type OperationCall struct {
	SessionID protocol.SessionID // empty: without a session
	Args      json.RawMessage
	Scope     string       // unique to a run of a task; empty for queries and commands
	Host      Capabilities // for a query: read-only
}

// OperationResult is the result of a command or task. Its events and queued turns are committed together, before the
// caller gets its receipt.
type OperationResult struct {
	Output json.RawMessage       `json:"output,omitempty"`
	Events []protocol.PluginNode `json:"events,omitempty"`
	Queue  []QueueTurn           `json:"queue,omitempty"`
}

// QueueTurn starts a turn with an input. Two with the same source key start one turn.
type QueueTurn struct {
	Input        []protocol.InputPart  `json:"input"`
	PluginInputs protocol.PluginInputs `json:"pluginInputs,omitempty"`
	SourceKey    string                `json:"sourceKey,omitempty"`
}

// QueryFunc answers from published state. It may run in parallel with a turn and must not change anything.
type QueryFunc func(context.Context, *OperationCall) (json.RawMessage, error)

// CommandFunc changes something. A command never runs during a turn. A task has the same signature but may run long; it
// should return when ctx is done, and its result still counts then.
type CommandFunc func(context.Context, *OperationCall) (*OperationResult, error)
