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
	// Build makes the instance of one session. It does no IO, compiles nothing and waits for nothing.
	Build(BuildContext) (Plugin, error)
}

// Plugin is the instance of a plugin in one session.
type Plugin interface {
	// Register says what the plugin contributes. It does no IO.
	Register(*Registrar) error
}

// Closer is a Plugin that holds something while its session is resident.
type Closer interface {
	// Close is called once, when the session leaves memory, or another instance takes the place of this one, of which it may run
	// beside Build; nothing of the instance is called after it.
	Close() error
}

// BuildContext is what an instance may know of its session.
type BuildContext struct {
	SessionID  protocol.SessionID
	Parent     protocol.SessionID // empty: a root session
	Authority  protocol.Authority // what the session was granted when it was created
	Options    json.RawMessage    // of this plugin, from the session's configuration
	Extensions Extensions         // of all factories; the host fills it in
	Cwd        string             // the workspace; the caller has checked that it is an absolute path
	StateDir   string             // where lashd keeps its own files: no plugin may touch it
}

// Root tells whether the session works for nobody.
func (c BuildContext) Root() bool { return c.Parent == "" }

// Driver is the singleton that decides how turns talk to the model.
type Driver interface {
	turn.Driver
	// Preamble is the driver's own part of the system prompt. It is a pure function, and asked once for each catalog.
	Preamble(PreambleInput) string
}

// PreambleInput is what a driver's part of the prompt is made of.
type PreambleInput struct {
	Tools      []protocol.ToolManifest // of the catalog
	Extensions Extensions
	Triggers   []TriggerEvent
}
