package protocol

// ServerEventType is the type of a daemon event.
type ServerEventType string

const (
	ServerSessionChanged ServerEventType = "session/changed" // created, or its state, title, turns or archived state changed
	ServerSessionDeleted ServerEventType = "session/deleted"
	ServerStoreChanged   ServerEventType = "store/changed"
	ServerPluginChanged  ServerEventType = "plugin/changed"  // loaded, unloaded, or its problems changed
	ServerTriggerChanged ServerEventType = "trigger/changed" // created, updated, or stopped working
	ServerTriggerDeleted ServerEventType = "trigger/deleted" // not sent for triggers deleted together with their session
)

// ServerEvent is the params of server/event. It holds the current state of its subject. A slow client receives only the newest event
// of each subject, in the order of change.
type ServerEvent struct {
	AtMs      int64           `json:"atMs"`
	Type      ServerEventType `json:"type"`
	SessionID SessionID       `json:"sessionId,omitempty"` // of both session types
	Session   *Session        `json:"session,omitempty"`   // of session/changed
	Store     string          `json:"store,omitempty"`     // of store/changed: ok, or a description of the problem
	Plugin    *PluginInfo     `json:"plugin,omitempty"`    // of plugin/changed; without a status: the plugin was removed
	Trigger   *Trigger        `json:"trigger,omitempty"`   // of both trigger types
}
