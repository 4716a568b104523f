package protocol

// ServerEventType names news of the daemon as a whole.
type ServerEventType string

const (
	ServerSessionChanged ServerEventType = "session/changed" // created, or its state, title, turns or place changed
	ServerSessionDeleted ServerEventType = "session/deleted"
	ServerStoreChanged   ServerEventType = "store/changed"
	ServerPluginChanged  ServerEventType = "plugin/changed"  // loaded, or not any more, or something is wrong with it
	ServerTriggerChanged ServerEventType = "trigger/changed" // made, updated, or not at work any more
	ServerTriggerDeleted ServerEventType = "trigger/deleted" // that of a deleted session is not told of
)

// ServerEvent is the params of server/event. Each tells how its subject is now, so a client that is slow gets only the
// newest of each subject, in the order in which they changed.
type ServerEvent struct {
	AtMs      int64           `json:"atMs"`
	Type      ServerEventType `json:"type"`
	SessionID SessionID       `json:"sessionId,omitempty"` // of both session types
	Session   *Session        `json:"session,omitempty"`   // of session/changed
	Store     string          `json:"store,omitempty"`     // of store/changed: ok, or what it does not do, and why
	Plugin    *PluginInfo     `json:"plugin,omitempty"`    // of plugin/changed; without status: it is gone
	Trigger   *Trigger        `json:"trigger,omitempty"`   // of both trigger types
}
