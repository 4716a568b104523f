package protocol

// Mutation is embedded in the params of every method that changes something.
type Mutation struct {
	// IdempotencyKey makes a retry safe: a request with the same key and params returns the first response again.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}

// Key returns the idempotency key, or "".
func (m Mutation) Key() string { return m.IdempotencyKey }

// Replayable is embedded in the result of every method that changes something.
type Replayable struct {
	Duplicate bool `json:"duplicate,omitempty"` // the idempotency key was used before: this is the first response
}

// MarkDuplicate marks a result as a repeated response.
func (r *Replayable) MarkDuplicate() { r.Duplicate = true }

// Empty is the params or the result of a method without any.
type Empty struct{}

// InitializeParams opens a connection.
type InitializeParams struct {
	ProtocolVersion int                `json:"protocolVersion,omitempty"` // absent: any version
	ClientInfo      ClientInfo         `json:"clientInfo"`
	ClientID        ClientID           `json:"clientId,omitempty"` // from an earlier connection: the client keeps its tools and their pending calls
	Capabilities    ClientCapabilities `json:"capabilities,omitzero"`
}

// ClientInfo names a client.
type ClientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

// ClientCapabilities lists what a client supports.
type ClientCapabilities struct {
	NoDeltas bool `json:"noDeltas,omitempty"` // do not send item/delta events
}

// InitializeResult describes the daemon and its store.
type InitializeResult struct {
	ProtocolVersion int        `json:"protocolVersion"`
	ServerInfo      ClientInfo `json:"serverInfo"`
	ClientID        ClientID   `json:"clientId"`
	StoreID         string     `json:"storeId"`
	Epoch           int64      `json:"epoch"` // random, below 10^14; after a change of store or epoch, attaching with an old cursor returns a gap
	Features        []string   `json:"features"`
	DataDir         string     `json:"dataDir"`
	KeysWanted      []string   `json:"keysWanted,omitempty"` // names of API keys missing from the daemon's environment; send them with model/setKey
}

// StatusResult is the state of the daemon.
type StatusResult struct {
	Version     string       `json:"version"`
	Pid         int          `json:"pid"`
	UptimeMs    int64        `json:"uptimeMs"`
	DataDir     string       `json:"dataDir"`
	Socket      string       `json:"socket,omitempty"`
	Sessions    int          `json:"sessions"`       // stored sessions
	Loaded      int          `json:"loadedSessions"` // sessions in memory
	Running     int          `json:"runningTurns"`
	Decisions   int          `json:"openDecisions"`
	Connections int          `json:"connections"`
	Drivers     []DriverInfo `json:"drivers"` // by name
	Store       string       `json:"store"`   // ok, or a description of the problem, such as lost commits; lash doctor helps with these
}

// DriverInfo describes a way in which sessions drive their model. session/new chooses one; a session keeps its driver.
type DriverInfo struct {
	Name    string `json:"name"` // for session/new
	Title   string `json:"title"`
	About   string `json:"about,omitempty"`   // a sentence for people who choose
	Default bool   `json:"default,omitempty"` // the driver of new sessions that name none
}

// ServerBackupParams sets the directory of a backup.
type ServerBackupParams struct {
	Dir string `json:"dir"` // an absolute path that does not exist yet; its parent directory must exist
}

// ServerBackupResult describes a finished and verified backup. The backup is complete unless missing or problems is set.
type ServerBackupResult struct {
	Dir      string   `json:"dir"`                // usable as a data directory
	Missing  []string `json:"missing,omitempty"`  // files that are missing or damaged in the data directory and so not in the backup
	Problems []string `json:"problems,omitempty"` // damaged database rows, copied unchanged
}

// DiagnosticsResult describes the daemon's resource use, its modes, and plugins with problems.
type DiagnosticsResult struct {
	RSSBytes    int64        `json:"rssBytes"`
	HeapBytes   int64        `json:"heapBytes"`
	Goroutines  int          `json:"goroutines"`
	OpenFiles   int          `json:"openFiles"`
	FileLimit   int64        `json:"openFilesLimit,omitempty"` // absent: unknown
	Children    int          `json:"children"`
	DBBytes     int64        `json:"dbBytes"`
	WALBytes    int64        `json:"walBytes"`
	Durability  string       `json:"durability"`
	Sandbox     string       `json:"sandbox"`     // sandbox for plugin programs that request one
	Containment string       `json:"containment"` // how lashd ends processes that commands leave behind: supervisors, and a cgroup if the system allows it
	StoreID     string       `json:"storeId"`
	Epoch       int64        `json:"epoch"`
	QueuedBytes int64        `json:"queuedBytes"` // bytes queued for slow clients
	TraceLost   int64        `json:"traceRecordsLost"`
	Roots       []PluginRoot `json:"roots"`         // plugin directories and how lashd watches them
	Ailing      []PluginInfo `json:"ailingPlugins"` // plugins with problems, of the user and of all workspaces in use
}

// ShutdownParams says what to shut down.
type ShutdownParams struct {
	Daemon bool `json:"daemon,omitempty"` // also stop the daemon; running turns resume after its restart
}
