package protocol

import "encoding/json"

// SessionStart says what history a new session starts with.
type SessionStart struct {
	Kind      StartKind `json:"kind"`
	SessionID SessionID `json:"sessionId,omitempty"` // the existing session, or the owner of the snapshot
	Snapshot  string    `json:"snapshot,omitempty"`  // name of the snapshot
}

// StartKind is the kind of a SessionStart.
type StartKind string

const (
	StartEmpty    StartKind = "empty"           // no history
	StartCurrent  StartKind = "currentSession"  // the state of the session that a plugin calls from; not for clients
	StartExisting StartKind = "existingSession" // the state of another session
	StartSnapshot StartKind = "snapshot"        // the state in a snapshot; absent sessionId: a snapshot of the current session
)

// PluginSource says whether a session that starts from another one also takes over its plugin state and tool settings.
type PluginSource string

const (
	PluginsFork  PluginSource = "fork"  // take them over
	PluginsFresh PluginSource = "fresh" // start with those of a new session
)

// PluginInputs maps plugin ids to inputs that only that plugin understands.
type PluginInputs map[string]json.RawMessage
