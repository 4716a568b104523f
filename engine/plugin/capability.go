package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// Capabilities are the services of the engine that a hook may use besides returning a value. Granted lists which hook
// gets which; the rest are nil, and the Need methods return an UnavailableError naming the missing one. Trace works
// with or without a Tracer. The services act on behalf of the hook's own session and check what that session may reach.
type Capabilities struct {
	State     StateService
	Lifecycle LifecycleService
	Graph     GraphService
	Models    CompletionService
	Tasks     TaskService
	Monitors  MonitorService
	Tracer    TraceService
}

// StateService reads sessions and changes which tools they have. All methods take a session id; the empty id means the
// hook's own session. Naming a session out of the plugin's reach is a ReachError.
type StateService interface {
	View(context.Context, protocol.SessionID) (*View, error) // empty id: the hook's own session
	Catalog(context.Context, protocol.SessionID) ([]protocol.ToolRecord, error)
	ToolState(context.Context, protocol.SessionID) (protocol.ToolState, error)
	ApplyToolState(context.Context, protocol.SessionID, protocol.ToolState) (generation int64, err error)
	SetMembership(ctx context.Context, id protocol.SessionID, names []string, member bool) (generation int64, err error)
	// SetAvailability sets the level of the named tools. An empty level removes the override, so that membership
	// decides again.
	SetAvailability(ctx context.Context, id protocol.SessionID, names []string, level protocol.ToolAvailability) (generation int64, err error)
	// WorksForOwn reports whether a session is the hook's own or a subagent of it, at any depth.
	WorksForOwn(context.Context, protocol.SessionID) (bool, error)
}

// LifecycleService creates, runs, closes and deletes sessions. Turns that it starts belong to other sessions and run
// after the call has returned; AwaitTurn waits for one.
type LifecycleService interface {
	CreateSession(context.Context, *protocol.SessionNewParams) (*protocol.SessionNewResult, error)
	// TakeFirstTurnInput returns the input that a session was created with, and false if the session does not exist.
	// Once taken, lashd does not start a turn with it.
	TakeFirstTurnInput(context.Context, protocol.SessionID) ([]protocol.InputPart, bool, error)
	CloseSession(context.Context, protocol.SessionID) error
	// DeleteSession removes a session permanently. It must be a direct child of the hook's own session. Deleting a
	// missing session succeeds.
	DeleteSession(context.Context, protocol.SessionID) error
	// StartTurn starts or queues a turn of another session. A malformed or contradictory request is a TurnRequestError.
	StartTurn(context.Context, *TurnRequest) (protocol.TurnID, error)
	AwaitTurn(context.Context, protocol.TurnID) (*protocol.TurnReport, error)
	CancelTurn(context.Context, protocol.TurnID) error
	// InjectTurnInput adds an input to the running turn of a session within reach of StartTurn; the turn reads it at
	// its next checkpoint. The input is durable when the call returns. A repeated idempotency key returns the first
	// input and adds nothing.
	InjectTurnInput(context.Context, *protocol.TurnSteerParams) (protocol.InputID, error)
}

// GraphService appends nodes to histories.
type GraphService interface {
	AppendNodes(context.Context, *protocol.GraphAppendParams) (*protocol.GraphAppendResult, error)
}

// CompletionService makes model calls outside of turns.
type CompletionService interface {
	Complete(context.Context, *protocol.CompletionParams) (*protocol.CompletionResult, error)
}

// MonitorService manages the monitors of the hook's own session. It ignores any session id in the params.
type MonitorService interface {
	Snapshot(context.Context) (*protocol.MonitorStatusResult, error)
	// Updates returns the updates since the last call; each update is returned once.
	Updates(context.Context) (*protocol.MonitorUpdatesResult, error)
	Start(context.Context, *protocol.MonitorStartParams) (*protocol.MonitorResult, error)
	// Stop returns after the monitor has ended.
	Stop(context.Context, *protocol.MonitorStopParams) (*protocol.MonitorResult, error)
}

// TraceService adds records to the trace of the session. lashd prefixes the name with "plugin.".
type TraceService interface {
	Trace(name string, payload json.RawMessage)
}

// UnavailableError means that the hook was not granted a capability; see Granted.
type UnavailableError struct{ Capability string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("capability %q is not available in this hook", e.Capability)
}

// ReachError means that a plugin named a session it may not use. Reachable are the session of the call, its subagents,
// and sessions requested from it, as long as they are in the same workspace.
type ReachError struct{ SessionID protocol.SessionID }

func (e *ReachError) Error() string {
	return fmt.Sprintf("session %s is out of reach: a plugin can use the session of its call, subagents of that session, and sessions requested from it, all in the same workspace", e.SessionID)
}

// Kind implements the error classification that process plugins receive.
func (*ReachError) Kind() protocol.ErrorKind { return protocol.KindDenied }

// NeedState returns the StateService, or an UnavailableError.
func (c Capabilities) NeedState() (StateService, error) { return need(c.State, "session state") }

// NeedLifecycle returns the LifecycleService, or an UnavailableError.
func (c Capabilities) NeedLifecycle() (LifecycleService, error) {
	return need(c.Lifecycle, "session lifecycle")
}

// NeedGraph returns the GraphService, or an UnavailableError.
func (c Capabilities) NeedGraph() (GraphService, error) { return need(c.Graph, "session graph") }

// NeedModels returns the CompletionService, or an UnavailableError.
func (c Capabilities) NeedModels() (CompletionService, error) {
	return need(c.Models, "direct completions")
}

// NeedMonitors returns the MonitorService, or an UnavailableError.
func (c Capabilities) NeedMonitors() (MonitorService, error) { return need(c.Monitors, "monitors") }

func need[S comparable](service S, name string) (S, error) {
	var none S
	if service == none {
		return none, &UnavailableError{name}
	}
	return service, nil
}
