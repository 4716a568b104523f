package plugin

import (
	"context"
	"encoding/json"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Hook names a kind of plugin code that lashd calls. The names appear in errors, in the trace and in the plugin
// protocol.
type Hook string

const (
	// The hooks of plugins, then from HookExecutor on the callbacks of executors, state and drivers, which get no
	// capabilities.
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
	HookCodeDescribe    Hook = "code_executor_describe"
	HookCodeGlobals     Hook = "code_executor_globals"
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

// Access is how much of the StateService a hook gets.
type Access int

const (
	NoState   Access = iota
	ToolState        // read a session, set membership of tools
	ReadState        // read everything, change nothing
	AllState
)

// Tasks is how much of the TaskService a hook gets.
type Tasks int

const (
	NoTasks   Tasks = iota
	ReadTasks       // read tasks, change nothing
	AllTasks
)

// Grants are the capabilities of a kind of hook. The zero Grants give nothing, not even a Tracer.
type Grants struct {
	State     Access
	Lifecycle bool
	Graph     bool
	Models    bool
	Tasks     Tasks
	Monitors  bool
}

// grants is the table behind Granted. Hooks that are missing from it get no capabilities.
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

// Granted returns the capabilities of a hook, as far as the engine offers them. A hook that is not listed gets none.
// Session enforces this limit on every call.
func Granted(hook Hook) Grants { return grants[hook] }

// ForTool returns the capabilities of a tool while its call runs, in addition to the call's Host. Outside of an engine
// it returns none.
func ForTool(call tool.Invocation) Capabilities {
	h, ok := call.Host.(interface{ Capabilities() Capabilities })
	if !ok {
		return Capabilities{}
	}
	return h.Capabilities().limit(HookTool)
}

// limit returns the part of c that a hook is granted.
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

// of returns s restricted to the access a, or nil.
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

// readState is a StateService whose changing methods fail.
type readState struct{ StateService }

// ReadOnly returns a StateService that can read but not change anything.
func ReadOnly(s StateService) StateService { return ReadState.of(s) }

// errReadOnly is returned by the changing methods of a restricted StateService.
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

// toolState is a StateService that reads sessions and sets membership, and nothing else.
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

// Trace adds a record to the trace, if the hook has a Tracer.
func (c Capabilities) Trace(name string, payload json.RawMessage) {
	if c.Tracer != nil {
		c.Tracer.Trace(name, payload)
	}
}
