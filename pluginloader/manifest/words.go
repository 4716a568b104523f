package manifest

import (
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Startup decides when lashd starts a process.
type Startup string

const (
	StartLazy  Startup = "lazy"  // on first use; the default
	StartEager Startup = "eager" // when the plugin loads
)

func (Startup) words() []string { return []string{"lazy", "eager"} }

// OnError is the effect of a hook that fails or times out.
type OnError string

const (
	OnErrorDeny  OnError = "deny"  // reject the call, or the turn before it starts
	OnErrorAllow OnError = "allow" // continue as if the hook had returned nothing, and report the failure
	OnErrorFail  OnError = "fail"  // the usual effect of an error of this hook, such as a failed turn
)

func (OnError) words() []string { return []string{"deny", "allow", "fail"} }

// Slot is the name of a hook.
type Slot string

const (
	SlotPrompt            Slot = "prompt"            // before each model call; returns texts
	SlotBeforeTurn        Slot = "beforeTurn"        // before a turn starts
	SlotBeforeToolCall    Slot = "beforeToolCall"    // before a call runs
	SlotAfterToolCall     Slot = "afterToolCall"     // after each attempt of a call that ran
	SlotCheckpoint        Slot = "checkpoint"        // after each batch of calls, and after a final answer
	SlotAfterTurn         Slot = "afterTurn"         // at the end of a turn, before its commit
	SlotAssistantStream   Slot = "assistantStream"   // for each piece of streamed text
	SlotAssistantResponse Slot = "assistantResponse" // for a complete reply
	SlotStreamFinished    Slot = "streamFinished"    // when a stream ends
	SlotProjectToolResult Slot = "projectToolResult" // for each tool result; returns the output for the model
	SlotConfigChanged     Slot = "configChanged"     // before settings are stored
	SlotEvent             Slot = "event"             // after an event of a session
	SlotTransformContext  Slot = "transformContext"  // before each model call; returns the history for the model
	SlotCompact           Slot = "compact"           // when history is compacted; returns the summary
	SlotCatalog           Slot = "catalog"           // when the tool catalog is built; returns tools to leave out
	SlotProjectProse      Slot = "projectProse"      // for text that people read: replies that were not streamed, and answers
	SlotClose             Slot = "close"             // when a session leaves memory; not in plugin.json, because lashd always notifies a process
)

func (Slot) words() []string {
	return []string{"prompt", "beforeTurn", "beforeToolCall", "afterToolCall", "checkpoint", "afterTurn",
		"assistantStream", "assistantResponse", "streamFinished", "projectToolResult", "configChanged", "event",
		"transformContext", "compact", "catalog", "projectProse"}
}

// News is a kind of event of a session.
type News plugin.LifecycleKind

func (News) words() []string {
	return []string{"turnFinalized", "turnPersisted", "sessionRestored", "sessionConfigChanged"}
}

// Capability is a group of requests that a plugin may send to lashd.
type Capability string

const (
	CapabilityState       Capability = "state"       // read sessions and change their tools
	CapabilityLifecycle   Capability = "lifecycle"   // create, drive and close sessions
	CapabilityGraph       Capability = "graph"       // append to history
	CapabilityCompletions Capability = "completions" // model calls outside of turns
	CapabilityTools       Capability = "tools"       // call other tools during a tool call
	CapabilityArtifacts   Capability = "artifacts"   // store artifacts during a tool call
	CapabilityDecisions   Capability = "decisions"   // ask a person during a tool call
	CapabilityTasks       Capability = "tasks"       // create and manage tasks
	CapabilityMonitors    Capability = "monitors"    // start and stop monitors
)

func (Capability) words() []string {
	return []string{"state", "lifecycle", "graph", "completions", "tools", "artifacts", "decisions", "tasks", "monitors"}
}

// ParameterType is the type of a parameter.
type ParameterType string

const (
	TypeString  ParameterType = "string"
	TypeInteger ParameterType = "integer"
	TypeNumber  ParameterType = "number"
	TypeBoolean ParameterType = "boolean"
	TypeArray   ParameterType = "array" // of strings
)

func (ParameterType) words() []string {
	return []string{"string", "integer", "number", "boolean", "array"}
}

// Place is the directory in which a command runs.
type Place string

const (
	InWorkspace Place = "workspace" // of the session; the default
	InPlugin    Place = "plugin"    // of the plugin
)

func (Place) words() []string { return []string{"workspace", "plugin"} }

// Access is the access of a sandboxed program to the workspace.
type Access string

const (
	AccessNone  Access = "none"
	AccessRead  Access = "read"
	AccessWrite Access = "write" // includes read
)

func (Access) words() []string { return []string{"none", "read", "write"} }

// ServerMode is the sandbox mode that an MCP server asks for.
type ServerMode string

const (
	ServerReadOnly   ServerMode = "readOnly"
	ServerFullAccess ServerMode = "fullAccess"
)

func (ServerMode) words() []string { return []string{"readOnly", "fullAccess"} }

// Transport is the transport of an MCP server.
type Transport string

const (
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http" // streamable HTTP
)

func (Transport) words() []string { return []string{"stdio", "http"} }

// MonitorArm decides when a monitor starts.
type MonitorArm protocol.MonitorArm

func (MonitorArm) words() []string {
	return []string{string(protocol.ArmManual), string(protocol.ArmSession)}
}

// MonitorWake is the effect of a monitor's output lines.
type MonitorWake protocol.MonitorWake

func (MonitorWake) words() []string {
	return []string{string(protocol.WakeTurn), string(protocol.WakeNotify)}
}

// PromptSlot is a place in the system prompt. Slots are rendered in the order of their names.
type PromptSlot plugin.Slot

func (PromptSlot) words() []string {
	return []string{"environment", "execution", "guidance", "intro", "projectInstructions", "runtimeContext"}
}
