package protocol

import "encoding/json"

// SnapshotParams names a snapshot of a session.
type SnapshotParams struct {
	SessionID SessionID `json:"sessionId"`
	Name      string    `json:"name"`
}

// SnapshotMutationParams makes, restores or deletes a snapshot.
type SnapshotMutationParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Name      string    `json:"name"`
}

// SnapshotInfo is a state of a session that has a name: a node of its history, with what plugins and tools were like then.
type SnapshotInfo struct {
	Name   string `json:"name"`
	NodeID NodeID `json:"nodeId"` // it stays reachable
	AtMs   int64  `json:"atMs"`
	Nodes  int64  `json:"nodes"`           // of history before it
	Bytes  int64  `json:"bytes,omitempty"` // that plugins, tools and monitors take; snapshot/create does not tell
}

// SnapshotResult is a snapshot that was made.
type SnapshotResult struct {
	Snapshot SnapshotInfo `json:"snapshot"`
	Seq      Seq          `json:"seq"`
	Replayable
}

// SnapshotListResult are the snapshots of a session, by name.
type SnapshotListResult struct {
	Data []SnapshotInfo `json:"data"`
}

// SnapshotReadResult is what a snapshot holds.
type SnapshotReadResult struct {
	Snapshot    SnapshotInfo  `json:"snapshot"`
	Plugins     []PluginState `json:"plugins"`            // by plugin
	Fingerprint uint64        `json:"fingerprint,string"` // of the plugins when they were captured
	Tools       *ToolState    `json:"tools,omitempty"`    // absent: nobody had decided anything
}

// SnapshotPreviewResult is what a restore would change.
type SnapshotPreviewResult struct {
	Snapshot SnapshotInfo `json:"snapshot"`
	Now      SnapshotSide `json:"now"`  // the session as it is
	Then     SnapshotSide `json:"then"` // as it would be
}

// SnapshotSide is a session on one side of a restore.
type SnapshotSide struct {
	NodeID    NodeID        `json:"nodeId"`              // its leaf
	Nodes     int64         `json:"nodes"`               // of history that the other side does not have
	Items     []Item        `json:"items"`               // what the newest of these show, of at most 100
	Plugins   []PluginState `json:"plugins"`             // by plugin
	Tools     ToolState     `json:"tools"`               // what was decided about them
	Monitors  []Monitor     `json:"monitors"`            // a restore stops those that run
	Execution Digest        `json:"execution,omitempty"` // of what the code executor keeps
}

// PluginState is the saved state of a plugin.
type PluginState struct {
	Plugin    string           `json:"plugin"`
	Version   string           `json:"version"`
	Revision  uint64           `json:"revision,string"`
	State     json.RawMessage  `json:"state,omitempty"`
	Artifacts []PluginArtifact `json:"artifacts,omitempty"`
}

// PluginArtifact is a piece of bulk state. A small one stands here; others are read with artifact/read.
type PluginArtifact struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`
	Data   []byte `json:"data,omitempty"`
}

// SnapshotRestoreResult is the session's new head.
type SnapshotRestoreResult struct {
	Head   Head   `json:"head"`
	Pinned NodeID `json:"pinned,omitempty"` // the leaf as it was
	Seq    Seq    `json:"seq"`
	Replayable
}

// ArtifactReadParams reads a part of an artifact.
type ArtifactReadParams struct {
	Digest Digest `json:"digest"`
	Offset int64  `json:"offset,omitempty"`
	Limit  int64  `json:"limit,omitempty"` // 1 to 1048576 bytes; absent: 1048576
}

// ArtifactReadResult is a part of an artifact. It is the last one if Offset and its length come to Size.
type ArtifactReadResult struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"` // of the whole
	Offset int64  `json:"offset"`
	Bytes  []byte `json:"bytes"`
}

// ArtifactWriteParams sends a part of an artifact of a session. The parts of one upload come one after the other, the first
// at offset 0; with Done the artifact is stored, and durable with the answer. Until then its parts are in memory only. An upload that is not
// done is forgotten when nothing comes for ten minutes, and when the daemon ends.
type ArtifactWriteParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	UploadID  string    `json:"uploadId"` // chosen by the client
	Offset    int64     `json:"offset,omitempty"`
	Bytes     []byte    `json:"bytes"` // at most 1 MiB
	Done      bool      `json:"done,omitempty"`
	Digest    Digest    `json:"digest,omitempty"` // of the whole, with Done: checked if given
}

// ArtifactWriteResult tells how far an upload is.
type ArtifactWriteResult struct {
	Received int64  `json:"received"`
	Digest   Digest `json:"digest,omitempty"`  // once it is stored
	Durable  bool   `json:"durable,omitempty"` // all that was received survives a crash; false: a crash loses it, and the upload begins at 0 again
	Replayable
}

// OperationListParams names a session, or none: then the operations are listed as they are for new sessions.
type OperationListParams struct {
	SessionID SessionID `json:"sessionId,omitempty"`
}

// OperationListResult are operations, by name, and what plugins take with turn/start.
type OperationListResult struct {
	Data       []OperationInfo `json:"data"`
	TurnInputs []TurnInputInfo `json:"turnInputs"`
}

// TurnInputInfo is what a plugin takes with a turn.
type TurnInputInfo struct {
	Plugin   string          `json:"plugin"`
	Schema   json.RawMessage `json:"schema,omitempty"` // absent: any JSON
	Required bool            `json:"required,omitempty"`
}

// OperationQueryParams asks a plugin.
type OperationQueryParams struct {
	SessionID SessionID       `json:"sessionId,omitempty"` // as the operation's session rule says
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args,omitempty"` // absent: an empty object
}

// OperationQueryResult is what the plugin answers.
type OperationQueryResult struct {
	Plugin string          `json:"plugin"`
	Output json.RawMessage `json:"output"`
}

// OperationParams has a plugin do something.
type OperationParams struct {
	Mutation
	SessionID SessionID       `json:"sessionId,omitempty"` // as the operation's session rule says
	Name      string          `json:"name"`
	Args      json.RawMessage `json:"args,omitempty"` // absent: an empty object
}

// OperationReceipt is what an operation came to. All of it is durable.
type OperationReceipt struct {
	Plugin string          `json:"plugin"`
	Output json.RawMessage `json:"output"`
	Events []PluginNode    `json:"events"`           // that it added to history
	Inputs []QueuedInput   `json:"inputs"`           // that it queued, now or when it was called before
	Issues []Issue         `json:"issues,omitempty"` // what went wrong and did not hinder it
	Seq    Seq             `json:"seq"`              // 0 without a session
	Replayable
}
