package protocol

import "encoding/json"

// SnapshotParams names a snapshot of a session.
type SnapshotParams struct {
	SessionID SessionID `json:"sessionId"`
	Name      string    `json:"name"`
}

// SnapshotMutationParams names a snapshot to create, restore or delete.
type SnapshotMutationParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Name      string    `json:"name"`
}

// SnapshotInfo describes a snapshot: a node of history with the state of plugins and tools at that time.
type SnapshotInfo struct {
	Name   string `json:"name"`
	NodeID NodeID `json:"nodeId"` // the leaf at that time; it stays reachable
	AtMs   int64  `json:"atMs"`
	Nodes  int64  `json:"nodes"`           // number of nodes from the root to nodeId
	Bytes  int64  `json:"bytes,omitempty"` // size of the state of plugins, tools and monitors; not set by snapshot/create
}

// SnapshotResult is a created snapshot.
type SnapshotResult struct {
	Snapshot SnapshotInfo `json:"snapshot"`
	Seq      Seq          `json:"seq"`
	Replayable
}

// SnapshotListResult lists the snapshots of a session, sorted by name.
type SnapshotListResult struct {
	Data []SnapshotInfo `json:"data"`
}

// SnapshotReadResult holds the contents of a snapshot.
type SnapshotReadResult struct {
	Snapshot    SnapshotInfo  `json:"snapshot"`
	Plugins     []PluginState `json:"plugins"`            // sorted by plugin
	Fingerprint uint64        `json:"fingerprint,string"` // of the set of plugins at that time
	Tools       *ToolState    `json:"tools,omitempty"`    // absent: all settings were at their defaults
}

// SnapshotPreviewResult shows what restoring a snapshot would change.
type SnapshotPreviewResult struct {
	Snapshot SnapshotInfo `json:"snapshot"`
	Now      SnapshotSide `json:"now"`  // the session as it is
	Then     SnapshotSide `json:"then"` // the session after a restore
}

// SnapshotSide is the state of a session before or after a restore.
type SnapshotSide struct {
	NodeID    NodeID        `json:"nodeId"`              // its leaf
	Nodes     int64         `json:"nodes"`               // number of nodes that the other side does not have
	Items     []Item        `json:"items"`               // items of these nodes; at most the newest 100 nodes
	Plugins   []PluginState `json:"plugins"`             // sorted by plugin
	Tools     ToolState     `json:"tools"`               // tool settings
	Monitors  []Monitor     `json:"monitors"`            // a restore stops running monitors
	Execution Digest        `json:"execution,omitempty"` // of the code executor's state
}

// PluginState is the saved state of a plugin.
type PluginState struct {
	Plugin    string           `json:"plugin"`
	Version   string           `json:"version"`
	Revision  uint64           `json:"revision,string"`
	State     json.RawMessage  `json:"state,omitempty"`
	Artifacts []PluginArtifact `json:"artifacts,omitempty"`
}

// PluginArtifact is a large piece of a plugin's state. Small artifacts are inline in data; read others with artifact/read.
type PluginArtifact struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`
	Data   []byte `json:"data,omitempty"`
}

// SnapshotRestoreResult is the session's new head.
type SnapshotRestoreResult struct {
	Head   Head   `json:"head"`
	Pinned NodeID `json:"pinned,omitempty"` // the leaf before the restore, now pinned
	Seq    Seq    `json:"seq"`
	Replayable
}

// ArtifactReadParams selects a range of an artifact.
type ArtifactReadParams struct {
	Digest Digest `json:"digest"`
	Offset int64  `json:"offset,omitempty"`
	Limit  int64  `json:"limit,omitempty"` // 1 to 1048576 bytes; absent: 1048576
}

// ArtifactReadResult is a range of an artifact. It is the last one if offset plus the length of bytes equals size.
type ArtifactReadResult struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"` // of the whole artifact
	Offset int64  `json:"offset"`
	Bytes  []byte `json:"bytes"`
}

// ArtifactWriteParams is one part of an upload. Send the parts in order, starting at offset 0. With done, lashd stores the artifact
// before it responds. Until then it keeps the parts in memory only. It drops an unfinished upload after ten minutes without a new
// part, and when the daemon stops.
type ArtifactWriteParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	UploadID  string    `json:"uploadId"` // chosen by the client
	Offset    int64     `json:"offset,omitempty"`
	Bytes     []byte    `json:"bytes"` // at most 1 MiB
	Done      bool      `json:"done,omitempty"`
	Digest    Digest    `json:"digest,omitempty"` // with done: expected digest of the whole artifact; checked if set
}

// ArtifactWriteResult reports the progress of an upload.
type ArtifactWriteResult struct {
	Received int64  `json:"received"`
	Digest   Digest `json:"digest,omitempty"`  // set when the artifact is stored
	Durable  bool   `json:"durable,omitempty"` // the received parts survive a crash; absent: after a crash, start again at offset 0
	Replayable
}

// OperationListParams selects a session. Without one, the result lists the operations of new sessions.
type OperationListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"`
}

// OperationListResult lists operations, sorted by name, and the inputs that plugins accept with turn/start.
type OperationListResult struct {
	Data       []OperationInfo `json:"data"`
	TurnInputs []TurnInputInfo `json:"turnInputs"`
}

// TurnInputInfo describes the input that a plugin accepts with a turn.
type TurnInputInfo struct {
	Plugin   string          `json:"plugin"`
	Schema   json.RawMessage `json:"schema,omitempty"` // absent: any JSON
	Required bool            `json:"required,omitempty"`
}

// OperationQueryParams calls a query.
type OperationQueryParams struct {
	SessionID SessionID       `json:"sessionId,omitempty"` // required, optional or forbidden, as the operation declares
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args,omitempty"` // absent: an empty object
}

// OperationQueryResult is the plugin's response.
type OperationQueryResult struct {
	Plugin string          `json:"plugin"`
	Output json.RawMessage `json:"output"`
}

// OperationParams calls an operation.
type OperationParams struct {
	Mutation
	SessionID SessionID       `json:"sessionId,omitempty"` // required, optional or forbidden, as the operation declares
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args,omitempty"` // absent: an empty object
}

// OperationReceipt is the result of an operation. All its effects are stored.
type OperationReceipt struct {
	Plugin string          `json:"plugin"`
	Output json.RawMessage `json:"output"`
	Events []PluginNode    `json:"events"`           // nodes that it added to history
	Inputs []QueuedInput   `json:"inputs"`           // inputs that it queued, in this call or an earlier identical one
	Issues []Issue         `json:"issues,omitempty"` // problems that did not stop it
	Seq    Seq             `json:"seq"`              // 0 without a session
	Replayable
}
