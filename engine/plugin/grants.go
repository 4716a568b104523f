package plugin

import (
	"context"
	"encoding/json"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Hook names a kind of plugin code that is called.
type Hook string

const (
	HookPrompt          Hook = "prompt"
	HookBeforeTurn      Hook = "before_turn"
	HookBeforeTool      Hook = "before_tool_call"
	HookAfterTool       Hook = "after_tool_call"
	HookProjector       Hook = "tool_result_projector"
	HookCheckpoint      Hook = "checkpoint"
	HookAfterTurn       Hook = "after_turn"
	HookStream          Hook = "assistant_stream"
	HookResponse        Hook = "assistant_response"
	HookStreamEnd       Hook = "assistant_stream_finished"
	HookTurnFinalized   Hook = "turn_finalized"
	HookTurnPersisted   Hook = "turn_persisted"
	HookSessionRestored Hook = "session_restored"
	HookConfigChanged   Hook = "session_config_changed"
	HookConfigMutator   Hook = "config_mutator"
	HookTransform       Hook = "context_transform"
	HookCompactor       Hook = "compactor"
	HookCatalog         Hook = "tool_catalog"
	HookProse           Hook = "prose_projector"
	HookTool            Hook = "tool"
	HookQuery           Hook = "query"
	HookCommand         Hook = "command"
	HookTask            Hook = "task"
	HookBeforeModel     Hook = "before_llm_call"
	HookProtocol        Hook = "protocol_session"
	HookExecutor        Hook = "code_executor"
	HookCodeSnapshot    Hook = "code_executor_snapshot"
	HookCodeStored      Hook = "code_executor_stored"
	HookCodeRestore     Hook = "code_executor_restore"
	HookSnapshot        Hook = "snapshot"
	HookRestore         Hook = "restore"
	HookRevision        Hook = "revision"
	HookPreamble        Hook = "preamble"
	HookDriver          Hook = "driver"
	HookBuild           Hook = "build"
	HookRegister        Hook = "register"
	HookTools           Hook = "tools"
	HookReady           Hook = "ready"
	HookClose           Hook = "close"
)

// Access is how much of the StateService a hook is given.
type Access int

const (
	NoState   Access = iota
	ToolState        // look at a session, set membership of tools
	ReadState        // look at everything, change nothing
	AllState
)

// Tasks is how much of the TaskService a hook is given.
type Tasks int

const (
	NoTasks   Tasks = iota
	ReadTasks       // look at them, change nothing
	AllTasks
)

// Grants are the capabilities of a hook. Whoever has any may also trace.
type Grants struct {
	State     Access
	Lifecycle bool
	Graph     bool
	Models    bool
	Tasks     Tasks
	Monitors  bool
}

var grants = map[Hook]Grants{
	HookPrompt:        {State: AllState},
	HookBeforeTurn:    {State: AllState},
	HookBeforeTool:    {State: ToolState},
	HookAfterTool:     {State: ToolState},
	HookCheckpoint:    {State: AllState, Lifecycle: true, Graph: true},
	HookAfterTurn:     {State: AllState},
	HookConfigMutator: {State: AllState},
	HookConfigChanged: {State: AllState},
	HookTurnPersisted: {State: AllState, Graph: true, Models: true},
	HookTransform:     {State: AllState, Lifecycle: true, Graph: true, Models: true},
	HookCompactor:     {State: AllState, Lifecycle: true, Graph: true},
	HookBeforeModel:   {State: AllState, Graph: true, Tasks: AllTasks},
	HookTool:          {State: AllState, Lifecycle: true, Models: true, Tasks: AllTasks, Monitors: true},
	HookQuery:         {State: ReadState, Tasks: ReadTasks},
	HookCommand:       {State: AllState, Lifecycle: true, Graph: true, Tasks: AllTasks, Monitors: true},
	HookTask:          {State: AllState, Lifecycle: true, Graph: true, Tasks: AllTasks, Monitors: true},
}

// Granted is what a hook is given of what the engine offers; a hook that is not listed gets nothing. The session hands each
// hook no more than this.
func Granted(hook Hook) Grants { return grants[hook] }

// ForTool is what a tool is given while its call runs, besides the call's Host.
func ForTool(call tool.Invocation) Capabilities {
	h, ok := call.Host.(interface{ Capabilities() Capabilities })
	if !ok {
		return Capabilities{}
	}
	return h.Capabilities().limit(HookTool)
}

func (c Capabilities) limit(hook Hook) Capabilities {
	g := Granted(hook)
	if g == (Grants{}) {
		return Capabilities{}
	}
	out := Capabilities{State: g.State.of(c.State), Tasks: g.Tasks.of(c.Tasks), Tracer: c.Tracer}
	if g.Lifecycle {
		out.Lifecycle = c.Lifecycle
	}
	if g.Graph {
		out.Graph = c.Graph
	}
	if g.Models {
		out.Models = c.Models
	}
	if g.Monitors {
		out.Monitors = c.Monitors
	}
	return out
}

func (a Access) of(s StateService) StateService {
	switch {
	case s == nil || a == NoState:
		return nil
	case a == ReadState:
		return readState{s}
	case a == ToolState:
		return toolState{s}
	default:
		return s
	}
}

// readState is a StateService that changes nothing.
type readState struct{ StateService }

// Looking is a StateService that changes nothing.
func Looking(s StateService) StateService { return ReadState.of(s) }

var errReadOnly = &UnavailableError{"changing tool state"}

func (readState) ApplyToolState(context.Context, protocol.SessionID, protocol.ToolState) (int64, error) {
	return 0, errReadOnly
}

func (readState) SetMembership(context.Context, protocol.SessionID, []string, bool) (int64, error) {
	return 0, errReadOnly
}

func (readState) SetAvailability(context.Context, protocol.SessionID, []string, protocol.ToolAvailability) (int64, error) {
	return 0, errReadOnly
}

// toolState is a StateService that looks at sessions and sets membership.
type toolState struct{ StateService }

func (toolState) Catalog(context.Context, protocol.SessionID) ([]protocol.ToolRecord, error) {
	return nil, &UnavailableError{"the tool catalog"}
}

func (toolState) ToolState(context.Context, protocol.SessionID) (protocol.ToolState, error) {
	return protocol.ToolState{}, &UnavailableError{"the tool state"}
}

func (toolState) ApplyToolState(context.Context, protocol.SessionID, protocol.ToolState) (int64, error) {
	return 0, errReadOnly
}

func (toolState) SetAvailability(context.Context, protocol.SessionID, []string, protocol.ToolAvailability) (int64, error) {
	return 0, errReadOnly
}

// Trace adds a record to the trace, if there is one.
func (c Capabilities) Trace(name string, payload json.RawMessage) {
	if c.Tracer != nil {
		c.Tracer.Trace(name, payload)
	}
}
