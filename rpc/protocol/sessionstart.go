package protocol

import "encoding/json"

// SessionStart is what a new session begins with: with nothing, or with the history of another.
type SessionStart struct {
	Kind      StartKind `json:"kind"`
	SessionID SessionID `json:"sessionId,omitempty"` // of an existing session, or whose snapshot it is
	Snapshot  string    `json:"snapshot,omitempty"`  // its name
}

// StartKind names a way to begin.
type StartKind string

const (
	StartEmpty    StartKind = "empty"           // with nothing
	StartCurrent  StartKind = "currentSession"  // where the session is from which a plugin asks; clients have none
	StartExisting StartKind = "existingSession" // where another session is
	StartSnapshot StartKind = "snapshot"        // where a session was when it was given a name; absent sessionId: the current one
)

// PluginSource says what the plugins and tools of a session are like that starts where another one is.
type PluginSource string

const (
	PluginsFork  PluginSource = "fork"  // as they are there
	PluginsFresh PluginSource = "fresh" // as in a new session
)

// PluginInputs are inputs for plugins, by plugin id: JSON that only its plugin understands.
type PluginInputs map[string]json.RawMessage
