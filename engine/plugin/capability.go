package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// Capabilities is what a hook may do beyond answering. Each hook is given some of them, as Granted tells; the others are
// nil, and the Need methods fail for those with an UnavailableError that names what is missing. Tracing never fails.
type Capabilities struct {
	State     StateService
	Lifecycle LifecycleService
	Graph     GraphService
	Models    CompletionService
	Tasks     TaskService
	Monitors  MonitorService
	Tracer    TraceService
}

// StateService looks at sessions and changes which tools they have.
type StateService interface {
	View(context.Context, protocol.SessionID) (*View, error) // empty id: the hook's own session
	Catalog(context.Context, protocol.SessionID) ([]protocol.ToolRecord, error)
	ToolState(context.Context, protocol.SessionID) (protocol.ToolState, error)
	ApplyToolState(context.Context, protocol.SessionID, protocol.ToolState) (generation int64, err error)
	SetMembership(ctx context.Context, id protocol.SessionID, names []string, member bool) (generation int64, err error)
	// SetAvailability says how far tools are open to the model; an empty level takes back what was said before.
	SetAvailability(ctx context.Context, id protocol.SessionID, names []string, level protocol.ToolAvailability) (generation int64, err error)
	WorksForOwn(context.Context, protocol.SessionID) (bool, error) // whether it is the hook's own session, or one below it
}

// LifecycleService creates, drives, closes and deletes sessions.
type LifecycleService interface {
	CreateSession(context.Context, *protocol.SessionNewParams) (*protocol.SessionNewResult, error)
	TakeFirstTurnInput(context.Context, protocol.SessionID) ([]protocol.InputPart, bool, error)
	CloseSession(context.Context, protocol.SessionID) error
	DeleteSession(context.Context, protocol.SessionID) error          // for ever; only one that works for the hook's own
	StartTurn(context.Context, *TurnRequest) (protocol.TurnID, error) // of another session; a wrong request is a TurnRequestError
	AwaitTurn(context.Context, protocol.TurnID) (*protocol.TurnReport, error)
	CancelTurn(context.Context, protocol.TurnID) error
	// InjectTurnInput lets an input into the running turn of a session that StartTurn reaches, at its next checkpoint. It is durable
	// then; once for an idempotency key.
	InjectTurnInput(context.Context, *protocol.TurnSteerParams) (protocol.InputID, error)
}

// GraphService adds to histories.
type GraphService interface {
	AppendNodes(context.Context, *protocol.GraphAppendParams) (*protocol.GraphAppendResult, error)
}

// CompletionService makes model calls outside of turns.
type CompletionService interface {
	Complete(context.Context, *protocol.CompletionParams) (*protocol.CompletionResult, error)
}

// MonitorService is about the monitors of the hook's own session, whatever session its params name.
type MonitorService interface {
	Snapshot(context.Context) (*protocol.MonitorStatusResult, error)
	Updates(context.Context) (*protocol.MonitorUpdatesResult, error) // each is given once
	Start(context.Context, *protocol.MonitorStartParams) (*protocol.MonitorResult, error)
	Stop(context.Context, *protocol.MonitorStopParams) (*protocol.MonitorResult, error) // waits for its end
}

// TraceService adds records to the trace.
type TraceService interface {
	Trace(name string, payload json.RawMessage)
}

// UnavailableError says that a hook was not given a capability.
type UnavailableError struct{ Capability string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the capability %s is not given here", e.Capability)
}

// ReachError says that a plugin named a session that it may not name.
type ReachError struct{ SessionID protocol.SessionID }

func (e *ReachError) Error() string {
	return fmt.Sprintf("session %s is out of reach: it is not the session of the call, does not work for it, and was not asked for from it, or it is in another workspace", e.SessionID)
}

// Kind is the word that plugins are told.
func (*ReachError) Kind() protocol.ErrorKind { return protocol.KindDenied }

// NeedState is the StateService, or an UnavailableError.
func (c Capabilities) NeedState() (StateService, error) { return need(c.State, "session state") }

// NeedLifecycle is the LifecycleService, or an UnavailableError.
func (c Capabilities) NeedLifecycle() (LifecycleService, error) {
	return need(c.Lifecycle, "session lifecycle")
}

// NeedGraph is the GraphService, or an UnavailableError.
func (c Capabilities) NeedGraph() (GraphService, error) { return need(c.Graph, "session graph") }

// NeedModels is the CompletionService, or an UnavailableError.
func (c Capabilities) NeedModels() (CompletionService, error) {
	return need(c.Models, "direct completions")
}

// NeedMonitors is the MonitorService, or an UnavailableError.
func (c Capabilities) NeedMonitors() (MonitorService, error) { return need(c.Monitors, "monitors") }

func need[S comparable](service S, name string) (S, error) {
	var none S
	if service == none {
		return none, &UnavailableError{name}
	}
	return service, nil
}
