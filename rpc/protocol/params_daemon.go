package protocol

// Mutation is part of the params of every method that changes something.
type Mutation struct {
	// IdempotencyKey makes a retry safe: the same key with the same params gets the first answer again.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// Key is the idempotency key, or "".
func (m Mutation) Key() string { return m.IdempotencyKey }

// Replayable is part of the result of every method that changes something.
type Replayable struct {
	Duplicate bool `json:"duplicate,omitempty"` // the idempotency key was known: this is the first answer again
}

// MarkDuplicate says that a result is an earlier one.
func (r *Replayable) MarkDuplicate() { r.Duplicate = true }

// Empty are the params or the result of a method that has none.
type Empty struct{}

// InitializeParams opens a connection.
type InitializeParams struct {
	ProtocolVersion int                `json:"protocolVersion,omitempty"` // absent: any
	ClientInfo      ClientInfo         `json:"clientInfo"`
	ClientID        ClientID           `json:"clientId,omitempty"` // keeps tools and answers with a client that reconnects
	Capabilities    ClientCapabilities `json:"capabilities,omitzero"`
}

// ClientInfo names a client.
type ClientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

// ClientCapabilities says what a client can do.
type ClientCapabilities struct {
	NoDeltas bool `json:"noDeltas,omitempty"` // leave item/delta out
}

// InitializeResult says who answers.
type InitializeResult struct {
	ProtocolVersion int        `json:"protocolVersion"`
	ServerInfo      ClientInfo `json:"serverInfo"`
	ClientID        ClientID   `json:"clientId"`
	StoreID         string     `json:"storeId"`
	Epoch           int64      `json:"epoch"` // random, below 10^14; a cursor of another store or epoch is answered with a gap
	Features        []string   `json:"features"`
	DataDir         string     `json:"dataDir"`
	KeysWanted      []string   `json:"keysWanted,omitempty"` // names of API keys that the daemon's own environment lacks; model/setKey takes them
}

// StatusResult is what server/status answers.
type StatusResult struct {
	Version     string `json:"version"`
	Pid         int    `json:"pid"`
	UptimeMs    int64  `json:"uptimeMs"`
	DataDir     string `json:"dataDir"`
	Socket      string `json:"socket,omitempty"`
	Sessions    int    `json:"sessions"`       // stored
	Loaded      int    `json:"loadedSessions"` // in memory
	Running     int    `json:"runningTurns"`
	Decisions   int    `json:"openDecisions"`
	Connections int    `json:"connections"`
	Store       string `json:"store"` // ok, or what is wrong, such as a loss of commits that nobody has acknowledged with lashd doctor --fix
}

// ServerBackupParams says where a copy of all that is stored is put.
type ServerBackupParams struct {
	Dir string `json:"dir"` // an absolute path, of which nothing is there yet but its parent
}

// ServerBackupResult is a copy that was verified. It is whole unless Missing or Problems are given.
type ServerBackupResult struct {
	Dir      string   `json:"dir"`                // can be used as a data directory
	Missing  []string `json:"missing,omitempty"`  // files of the data directory that are missing or damaged, and so not in the copy
	Problems []string `json:"problems,omitempty"` // damaged rows of the database, which the copy has as they are
}

// DiagnosticsResult is what server/diagnostics answers.
type DiagnosticsResult struct {
	RSSBytes    int64        `json:"rssBytes"`
	HeapBytes   int64        `json:"heapBytes"`
	Goroutines  int          `json:"goroutines"`
	OpenFiles   int          `json:"openFiles"`
	FileLimit   int64        `json:"openFilesLimit,omitempty"` // absent: not known
	Children    int          `json:"children"`
	DBBytes     int64        `json:"dbBytes"`
	WALBytes    int64        `json:"walBytes"`
	Durability  string       `json:"durability"`
	Sandbox     string       `json:"sandbox"`     // what programs of plugins are confined by that ask for it
	Containment string       `json:"containment"` // what ends the processes that commands leave: supervisors, and a cgroup where the system allows one
	StoreID     string       `json:"storeId"`
	Epoch       int64        `json:"epoch"`
	QueuedBytes int64        `json:"queuedBytes"` // to slow clients
	TraceLost   int64        `json:"traceRecordsLost"`
	Roots       []PluginRoot `json:"roots"`         // directories of plugins, and how they are watched
	Ailing      []PluginInfo `json:"ailingPlugins"` // that are not as they should be, of the user and of all workspaces that are in use
}

// ShutdownParams says how much is to end.
type ShutdownParams struct {
	Daemon bool `json:"daemon,omitempty"` // the daemon too; turns are resumed when it starts again
}
