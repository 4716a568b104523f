// Package plugin is the contract between lashd and what extends it. A Factory lives as long as the daemon and builds
// one Plugin per session; a Plugin registers its contributions; a Session is what the contributions of all plugins add
// up to. In-process plugins and the adapters of the loader satisfy the same interfaces.
package plugin

import (
	"encoding/json"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Factory builds the instances of one plugin. It owns what the instances share.
type Factory interface {
	// ID is stable and unique among the factories of a host.
	ID() string
	// Build makes the instance of one session. It does no IO.
	Build(BuildContext) (Plugin, error)
}

// Plugin is the instance of a plugin in one session.
type Plugin interface {
	// Register says what the plugin contributes. It does no IO.
	Register(*Registrar) error
}

// Closer is a Plugin that holds something while its session is resident.
type Closer interface {
	// Close is called once, when the session leaves memory; nothing of the plugin is called after it.
	Close() error
}

// BuildContext is what an instance may know of its session.
type BuildContext struct {
	SessionID protocol.SessionID
	Parent    protocol.SessionID // empty: a root session
	Cwd       string             // the workspace; the caller has checked that it is an absolute path
	Options   json.RawMessage    // of this plugin, from the session's configuration
	StateDir  string             // where lashd keeps its own files: no plugin may touch it
}

// Driver is the singleton that decides how turns talk to the model.
type Driver interface {
	turn.Driver
	// Preamble is the driver's own part of the system prompt.
	Preamble(tools []protocol.ToolManifest) string
}

// Slot is a place in the system prompt. Slots are rendered in this order.
type Slot string

const (
	SlotIntro               Slot = "intro"
	SlotExecution           Slot = "execution"
	SlotGuidance            Slot = "guidance"
	SlotProjectInstructions Slot = "projectInstructions"
	SlotRuntimeContext      Slot = "runtimeContext"
	SlotEnvironment         Slot = "environment"
)

// Prompt is a text for the system prompt.
type Prompt struct {
	Slot     Slot
	Priority int      // lower comes first in its slot
	Tools    []string // if any: only when one of these is in the catalog
	Content  string
}

// ResultProjector bounds or reshapes a tool's output before it enters the conversation. It is a pure function.
type ResultProjector func(tool string, out protocol.ToolOutput) protocol.ToolOutput
