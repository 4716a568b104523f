package protocol

import "encoding/json"

// SessionNewParams creates a session, whole or not at all. Settings that are absent are those of the session where it starts;
// if it starts with nothing, those of the session that it works for; if there is none, the daemon's, or, if a plugin asks, those
// of the session it asks from.
type SessionNewParams struct {
	Mutation
	SessionID      SessionID           `json:"sessionId,omitempty"` // chosen by the client; never used before
	Cwd            string              `json:"cwd,omitempty"`       // the workspace: an absolute path to a directory; absent: as where it starts, or as whom it works for
	Title          string              `json:"title,omitempty"`
	Driver         string              `json:"driver,omitempty"`
	Model          string              `json:"model,omitempty"` // a name from model/list
	Prompt         *string             `json:"prompt,omitempty"`
	Budget         *Budget             `json:"budget,omitempty"`
	Approval       *ApprovalConfig     `json:"approval,omitempty"`
	Generation     *GenerationOptions  `json:"generation,omitempty"`
	GenerationMode OverlayMode         `json:"generationMode,omitempty"` // absent: replace
	Options        PluginOptions       `json:"options,omitempty"`
	Unknown        *UnknownOutcomeRule `json:"unknownOutcome,omitempty"`
	Drain          DrainPolicy         `json:"drain,omitempty"`
	Authority      Authority           `json:"authority,omitzero"`       // what it may use; never more than its parent, or where it starts
	Start          SessionStart        `json:"start,omitzero"`           // absent: with nothing
	PluginSource   PluginSource        `json:"pluginSource,omitempty"`   // absent: fork
	Relation       Relation            `json:"relation,omitzero"`        // root, or child with its parent; absent: as the authority says
	Nodes          []NodeBody          `json:"nodes,omitempty"`          // that its history begins with, or goes on with where it starts
	UsageLabel     string              `json:"usageLabel,omitempty"`     // under which its parent's ledger shows what it uses; absent: child
	FirstTurnInput []InputPart         `json:"firstTurnInput,omitempty"` // for the plugin that takes it first
	MCPServers     MCPServers          `json:"mcpServers,omitempty"`     // that this client brings, as with session/setOverlay
}

// SessionNewResult is the session as created. The connection is attached to it.
type SessionNewResult struct {
	SessionID SessionID `json:"sessionId"`
	Session   Session   `json:"session"`
	Seq       Seq       `json:"seq"`
	Replayable
}

// SessionParams names a session.
type SessionParams struct {
	SessionID SessionID `json:"sessionId"`
}

// SessionMutationParams names a session to change.
type SessionMutationParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
}

// SessionListParams chooses sessions, newest first.
type SessionListParams struct {
	Cwd      string `json:"cwd,omitempty"`
	Archived bool   `json:"archived,omitempty"`
	Children bool   `json:"children,omitempty"` // also sessions that work for others
	Cursor   string `json:"cursor,omitempty"`
	Limit    int    `json:"limit,omitempty"` // 1 to 200; absent: 50
}

// SessionListResult is a page of sessions.
type SessionListResult struct {
	Data       []Session `json:"data"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// SessionReadParams reads a page of a session's items, backwards from a cursor.
type SessionReadParams struct {
	SessionID SessionID `json:"sessionId"`
	Cursor    string    `json:"cursor,omitempty"` // absent: from the newest
	Limit     int       `json:"limit,omitempty"`  // nodes, 1 to 500; absent: 200. A page of large ones ends earlier, after 4 MiB
}

// SessionReadResult is a page of items in order, and where the older ones are.
type SessionReadResult struct {
	Session    Session `json:"session"`
	Data       []Item  `json:"data"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// SessionAttachParams subscribes the connection to a session.
type SessionAttachParams struct {
	SessionID SessionID `json:"sessionId"`
	AfterSeq  *Seq      `json:"afterSeq,omitempty"` // replay what came after; absent: a snapshot, then what comes
	Epoch     int64     `json:"epoch,omitempty"`    // the epoch in which AfterSeq was seen
}

// SessionAttachResult is the session as it is; every durable event after Seq follows, in order and once.
type SessionAttachResult struct {
	Session    Session       `json:"session"`
	Items      []Item        `json:"items,omitempty"` // the newest 200, or those of the last 4 MiB; absent in a replay
	NextCursor string        `json:"nextCursor,omitempty"`
	OpenItems  []Item        `json:"openItems,omitempty"` // with the text so far
	Decisions  []Decision    `json:"decisions"`           // open ones, also of sessions that work for this one
	Queue      []QueuedInput `json:"queue"`
	Tasks      []Task        `json:"tasks"`
	TurnID     TurnID        `json:"turnId,omitempty"`  // the running turn
	Entered    []QueuedInput `json:"entered,omitempty"` // inputs that it has taken in, and that are no items yet
	Seq        Seq           `json:"seq"`
	Gap        *Gap          `json:"gap,omitempty"` // AfterSeq cannot be replayed; this answer is a snapshot instead
}

// SessionConfigureParams changes settings, from the next turn on. Absent fields stay as they are.
type SessionConfigureParams struct {
	Mutation
	SessionID      SessionID           `json:"sessionId"`
	Model          string              `json:"model,omitempty"`
	Prompt         *string             `json:"prompt,omitempty"`
	Budget         *Budget             `json:"budget,omitempty"`
	Approval       *ApprovalConfig     `json:"approval,omitempty"`
	Generation     *GenerationOptions  `json:"generation,omitempty"`
	GenerationMode OverlayMode         `json:"generationMode,omitempty"` // absent: replace
	Options        PluginOptions       `json:"options,omitempty"`
	Unknown        *UnknownOutcomeRule `json:"unknownOutcome,omitempty"`
	Drain          DrainPolicy         `json:"drain,omitempty"` // absent: as it is
}

// HeadResult is where a session stands after a change.
type HeadResult struct {
	Head Head `json:"head"`
	Seq  Seq  `json:"seq"`
	Replayable
}

// ClientTool is a tool that the client itself runs.
type ClientTool struct {
	ToolManifest
	Replay     Replay `json:"replay,omitempty"`     // absent: never
	DeadlineMs int64  `json:"deadlineMs,omitempty"` // absent: two minutes
}

// SessionOverlayParams replaces what clients add to a session: the newest one's is there. One that adds nothing leaves what another adds
// while it is connected.
type SessionOverlayParams struct {
	Mutation
	SessionID        SessionID    `json:"sessionId"`
	IncludeBaseTools *bool        `json:"includeBaseTools,omitempty"` // absent: true
	Tools            []ClientTool `json:"tools,omitempty"`
	Prompt           string       `json:"prompt,omitempty"`
	MCPServers       MCPServers   `json:"mcpServers,omitempty"`     // that come and go with the client; absent: none
	WhileConnected   bool         `json:"whileConnected,omitempty"` // the rest goes with the client, too, when it has been away for half a minute
}

// SessionOverlayResult is the catalog's state after an overlay was set.
type SessionOverlayResult struct {
	Tools ToolState `json:"tools"`
	Seq   Seq       `json:"seq"`
	Replayable
}

// SessionSetTitleParams names a session for people.
type SessionSetTitleParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Title     string    `json:"title"`
}

// SessionArchiveParams puts a session away, or takes it out again.
type SessionArchiveParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Undo      bool      `json:"undo,omitempty"`
}

// SessionForkParams makes a new session that shares this one's history.
type SessionForkParams struct {
	Mutation
	SessionID   SessionID   `json:"sessionId"`
	AtNode      NodeID      `json:"atNode,omitempty"` // on the active path, or pinned; absent: the leaf
	Title       string      `json:"title,omitempty"`
	ToolCatalog ForkCatalog `json:"toolCatalog,omitempty"`
}

// ForkCatalog says which tools a fork begins with.
type ForkCatalog string

const (
	ForkInherit ForkCatalog = "inherit" // as its source has them now; the default
	ForkFresh   ForkCatalog = "fresh"   // as a new session has them
)

// SessionRewindParams moves the leaf to an ancestor: what came after it stays, pinned. With files it brings back, too, or only, what
// the files of the workspace were before the first turn that is left behind.
type SessionRewindParams struct {
	Mutation
	SessionID SessionID   `json:"sessionId"`
	ToNode    NodeID      `json:"toNode,omitempty"`  // the new leaf
	ToTurn    TurnID      `json:"toTurn,omitempty"`  // instead: to before this turn
	ToPoint   PointID     `json:"toPoint,omitempty"` // instead, for files only: to before this file point
	Files     RewindFiles `json:"files,omitempty"`   // absent: they stay as they are
	DryRun    bool        `json:"dryRun,omitempty"`  // only tells what would be done
	Force     bool        `json:"force,omitempty"`   // also where something would be lost; what cannot be brought back is left as it is
}

// RewindFiles says what a rewind is about.
type RewindFiles string

const (
	RewindAlso RewindFiles = "also" // history and files
	RewindOnly RewindFiles = "only" // files, and history stays
)

// SessionRewindResult tells what a rewind takes out of sight, and what it does to files.
type SessionRewindResult struct {
	Head   Head         `json:"head"`
	Pinned NodeID       `json:"pinned,omitempty"` // the leaf as it was
	Nodes  int64        `json:"nodes"`            // how many were left behind
	Seq    Seq          `json:"seq"`
	Point  PointID      `json:"pointId,omitempty"` // a rewind to it takes back what was done to files; absent: nothing was
	Files  []FileRewind `json:"files,omitempty"`   // that change
	Replayable
}

// SessionPointsResult lists file points in the order in which they were made.
type SessionPointsResult struct {
	Data []FilePoint `json:"data"`
}

// SessionDiffParams asks what a session did to files, or one turn or file point of it.
type SessionDiffParams struct {
	SessionID SessionID `json:"sessionId"`
	TurnID    TurnID    `json:"turnId,omitempty"`
	PointID   PointID   `json:"pointId,omitempty"`
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // of files; 1 to 500; absent: 100
}

// SessionDiffResult is a page of changed files in the order of their paths. It says what was done, not what files are now.
type SessionDiffResult struct {
	Data       []FileDiff  `json:"data"`
	Points     []FilePoint `json:"points"` // that the changes are of
	NextCursor string      `json:"nextCursor,omitempty"`
}

// SeqResult answers a change that has nothing more to say.
type SeqResult struct {
	Seq Seq `json:"seq"`
	Replayable
}

// SessionWaitParams waits until a session is idle: no turn runs and none is queued.
type SessionWaitParams struct {
	SessionID SessionID `json:"sessionId"`
	TimeoutMs int64     `json:"timeoutMs,omitempty"` // absent: no limit
}

// SessionWaitResult is the state at the end of the wait.
type SessionWaitResult struct {
	State SessionState `json:"state"`
	Seq   Seq          `json:"seq"`
}

// SessionCompactParams asks for a summary of history.
type SessionCompactParams struct {
	Mutation
	SessionID    SessionID `json:"sessionId"`
	Instructions string    `json:"instructions,omitempty"` // for whoever writes the summary
}

// SessionExtensionParams is what a client sends to the session's protocol.
type SessionExtensionParams struct {
	Mutation
	SessionID SessionID       `json:"sessionId"`
	Extension json.RawMessage `json:"extension"`
}

// SessionCompactResult is the session after it. Compacted is false if no plugin had anything to summarise.
type SessionCompactResult struct {
	Compacted bool   `json:"compacted"`
	Plugin    string `json:"plugin,omitempty"` // that wrote the summary
	Head      Head   `json:"head"`
	Seq       Seq    `json:"seq"`
	Replayable
}
