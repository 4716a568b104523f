package manifest

import (
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Startup says when a process is started.
type Startup string

const (
	StartLazy  Startup = "lazy"  // when it is first needed; the default
	StartEager Startup = "eager" // with the generation
)

func (Startup) words() []string { return []string{"lazy", "eager"} }

// OnError says what a hook that fails, or does not answer in time, comes to.
type OnError string

const (
	OnErrorDeny  OnError = "deny"  // what was asked about is refused: the call, or the turn before it begins
	OnErrorAllow OnError = "allow" // as if the hook had wanted nothing; the failure is told
	OnErrorFail  OnError = "fail"  // what a failure of a hook comes to at its place: a turn fails
)

func (OnError) words() []string { return []string{"deny", "allow", "fail"} }

// Slot is a place where hooks are asked.
type Slot string

const (
	SlotPrompt            Slot = "prompt"            // before each model call, for texts
	SlotBeforeTurn        Slot = "beforeTurn"        // before a turn begins
	SlotBeforeToolCall    Slot = "beforeToolCall"    // before a call runs
	SlotAfterToolCall     Slot = "afterToolCall"     // after each attempt of a call that ran
	SlotCheckpoint        Slot = "checkpoint"        // after each batch of calls, and after a final answer
	SlotAfterTurn         Slot = "afterTurn"         // when a turn is over, before it is committed
	SlotAssistantStream   Slot = "assistantStream"   // for each piece of text that comes in
	SlotAssistantResponse Slot = "assistantResponse" // for a complete reply
	SlotStreamFinished    Slot = "streamFinished"    // when a stream has ended
	SlotProjectToolResult Slot = "projectToolResult" // for what the model reads of a result
	SlotConfigChanged     Slot = "configChanged"     // before settings are stored
	SlotEvent             Slot = "event"             // when something has happened to a session
	SlotTransformContext  Slot = "transformContext"  // for what the model sees of the past
	SlotCompact           Slot = "compact"           // when history is to become a summary
	SlotCatalog           Slot = "catalog"           // when the catalog is made, for tools to leave out
	SlotProjectProse      Slot = "projectProse"      // for what a person reads of a reply that was not streamed, and of an answer
	SlotClose             Slot = "close"             // when a session leaves memory; not in plugin.json: a process is told anyway
)

func (Slot) words() []string {
	return []string{"prompt", "beforeTurn", "beforeToolCall", "afterToolCall", "checkpoint", "afterTurn",
		"assistantStream", "assistantResponse", "streamFinished", "projectToolResult", "configChanged", "event",
		"transformContext", "compact", "catalog", "projectProse"}
}

// News is something that has happened to a session.
type News plugin.LifecycleKind

func (News) words() []string {
	return []string{"turnFinalized", "turnPersisted", "sessionRestored", "sessionConfigChanged"}
}

// Capability is a group of calls that a plugin makes to lashd.
type Capability string

const (
	CapabilityState       Capability = "state"       // look at sessions, and change which tools they have
	CapabilityLifecycle   Capability = "lifecycle"   // make, drive and close sessions
	CapabilityGraph       Capability = "graph"       // add to histories
	CapabilityCompletions Capability = "completions" // model calls outside of turns
	CapabilityTools       Capability = "tools"       // call other tools, in the call of one of its own
	CapabilityArtifacts   Capability = "artifacts"   // store artifacts, in the call of a tool
	CapabilityDecisions   Capability = "decisions"   // ask a person
	CapabilityTasks       Capability = "tasks"       // work that outlives a hook
	CapabilityMonitors    Capability = "monitors"    // commands whose lines wake a session
)

func (Capability) words() []string {
	return []string{"state", "lifecycle", "graph", "completions", "tools", "artifacts", "decisions", "tasks", "monitors"}
}

// ParameterType is what a value of a parameter is.
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

// Access is what a confined program may do with files of the workspace.
type Access string

const (
	AccessNone  Access = "none"
	AccessRead  Access = "read"
	AccessWrite Access = "write" // read, too
)

func (Access) words() []string { return []string{"none", "read", "write"} }

// Transport is how an MCP server is spoken to.
type Transport string

const (
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http" // streamable HTTP
)

func (Transport) words() []string { return []string{"stdio", "http"} }

// MonitorArm is when a monitor is begun.
type MonitorArm protocol.MonitorArm

func (MonitorArm) words() []string {
	return []string{string(protocol.ArmManual), string(protocol.ArmSession)}
}

// MonitorWake is what the lines of a monitor do.
type MonitorWake protocol.MonitorWake

func (MonitorWake) words() []string {
	return []string{string(protocol.WakeTurn), string(protocol.WakeNotify)}
}

// PromptSlot is a place in the system prompt. Slots are rendered in the order of their names.
type PromptSlot plugin.Slot

func (PromptSlot) words() []string {
	return []string{"environment", "execution", "guidance", "intro", "projectInstructions", "runtimeContext"}
}
