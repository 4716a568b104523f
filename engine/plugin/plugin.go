// Package plugin is the contract between lashd and its plugins. A Factory lives as long as the daemon and builds one Plugin
// per session. A Plugin registers its contributions. A Session combines the contributions of all plugins. In-process plugins
// and the adapters of the plugin loader implement the same interfaces.
//
// lashd calls plugin code in a goroutine of its own and with a time limit. Code that does not return in time is abandoned:
// the call fails with a AbandonedError, and the state of that plugin is not stored again until its session is reopened.
package plugin

import (
	"encoding/json"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Factory builds the instances of one plugin and owns everything that they share. Methods may be called concurrently.
type Factory interface {
	// ID is stable and unique among the factories of a host. It names the plugin in configuration, errors and stored
	// state.
	ID() string
	// Build creates the instance for one session. It must not do IO, compile anything or block: opening a session waits
	// for it.
	Build(BuildContext) (Plugin, error)
}

// Plugin is the instance of a plugin in one session. It may also implement Readier, Closer, Stateful and Versioned.
type Plugin interface {
	// Register declares the contributions of the plugin. It must not do IO.
	Register(*Registrar) error
}

// Closer is a Plugin that holds resources while its session is in memory.
type Closer interface {
	// Close is called once, when the session leaves memory or when another instance replaces this one. In the second
	// case it may run in parallel with Build of the new one. No method of the instance is called after Close.
	Close() error
}

// BuildContext is what a new instance knows about its session.
type BuildContext struct {
	SessionID  protocol.SessionID
	Parent     protocol.SessionID // empty: a root session
	Authority  protocol.Authority // granted to the session when it was created
	Options    json.RawMessage    // of this plugin, from the session's configuration
	Extensions Extensions         // of all factories; set by the host
	// Sandbox is the mode of the session's commands. If it becomes readOnly, or is no longer, the session opens its plugins again.
	Sandbox  protocol.SandboxMode
	Cwd      string // the workspace: an absolute path, checked by the caller
	StateDir string // where lashd keeps its own files; plugins must not touch it
	// Servers returns the MCP servers that a client adds to the session now, by name. Nil: the session never has any.
	Servers func() []tool.Provider
}

// Root reports whether the session has no parent session.
func (c BuildContext) Root() bool { return c.Parent == "" }

// Driver decides the steps of a turn: what is sent to the model, and what happens with its reply. A session has exactly
// one.
type Driver interface {
	turn.Driver
	// Preamble returns the driver's part of the system prompt. It must be a pure function and is called once per
	// catalog.
	Preamble(PreambleInput) string
}

// PreambleInput is the input of a driver's preamble.
type PreambleInput struct {
	Tools      []protocol.ToolManifest // the tools in the catalog
	Extensions Extensions
	Triggers   []TriggerEvent
	Code       *CodeDescription // nil: the session has no executor for models, or the driver runs no code
}

// Preamble is the driver's part of the system prompt for a catalog.
type Preamble struct {
	Text     string
	Language string // of code cells; "": the driver runs none
}
