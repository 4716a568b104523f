package plugin

import (
	"context"
	"encoding/json"

	"lashd/rpc/protocol"
)

// OperationCall is an invocation of an operation.
type OperationCall struct {
	SessionID protocol.SessionID // empty: without a session
	Args      json.RawMessage
	Scope     string       // unique to a task's run; empty for the other kinds
	Host      Capabilities // a query reads only
}

// OperationResult is what a command or task came to. Its events and what it queues become durable together, before the
// receipt is given.
type OperationResult struct {
	Output json.RawMessage       `json:"output,omitempty"`
	Events []protocol.PluginNode `json:"events,omitempty"`
	Queue  []QueueTurn           `json:"queue,omitempty"`
}

// QueueTurn begins a turn with an input. The same source key twice is one turn.
type QueueTurn struct {
	Input        []protocol.InputPart  `json:"input"`
	PluginInputs protocol.PluginInputs `json:"pluginInputs,omitempty"`
	SourceKey    string                `json:"sourceKey,omitempty"`
}

// QueryFunc answers from what is published; it may run beside a turn.
type QueryFunc func(context.Context, *OperationCall) (json.RawMessage, error)

// CommandFunc changes something. It never runs beside a turn. A task is the same, may take its time, and should return when
// ctx is done; what it returns then still counts.
type CommandFunc func(context.Context, *OperationCall) (*OperationResult, error)
