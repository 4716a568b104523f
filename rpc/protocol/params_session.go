package protocol

import "encoding/json"

// SessionNewParams creates a session, completely or not at all. Absent settings come from the session in start. If start is
// empty, they come from the parent session. Without a parent, they are the daemon's defaults or, for a plugin's request, the settings
// of the session that the plugin calls from.
type SessionNewParams struct {
	Mutation
	SessionID      SessionID           `json:"sessionId,omitempty"` // a new id chosen by the client; absent: lashd chooses
	Cwd            string              `json:"cwd,omitempty"`       // the workspace: absolute path of a directory; absent: that of the session in start or of the parent
	Title          string              `json:"title,omitempty"`
	Driver         string              `json:"driver,omitempty"`
	Model          string              `json:"model,omitempty"`  // a name from model/list
	Effort         *string             `json:"effort,omitempty"` // one of the model's reasoning efforts; absent: the model's own setting; "": the model's default
	Prompt         *string             `json:"prompt,omitempty"`
	Budget         *Budget             `json:"budget,omitempty"`
	Approval       *ApprovalConfig     `json:"approval,omitempty"`
	Generation     *GenerationOptions  `json:"generation,omitempty"`
	GenerationMode OverlayMode         `json:"generationMode,omitempty"` // absent: replace
	Options        PluginOptions       `json:"options,omitempty"`
	Unknown        *UnknownOutcomeRule `json:"unknownOutcome,omitempty"`
	Drain          DrainPolicy         `json:"drain,omitempty"`
	Authority      Authority           `json:"authority,omitzero"`       // limits on what it may use; never wider than those of its parent or of the session in start
	Start          SessionStart        `json:"start,omitzero"`           // absent: empty
	PluginSource   PluginSource        `json:"pluginSource,omitempty"`   // absent: fork
	Relation       Relation            `json:"relation,omitzero"`        // root, or child with its parent; absent: follows from authority
	Nodes          []NodeBody          `json:"nodes,omitempty"`          // first nodes of its history, after the history from start
	UsageLabel     string              `json:"usageLabel,omitempty"`     // label of its usage in the parent's ledger; absent: child
	FirstTurnInput []InputPart         `json:"firstTurnInput,omitempty"` // input for the first plugin that accepts it
	MCPServers     MCPServers          `json:"mcpServers,omitempty"`     // MCP servers of this client, as in session/setOverlay
}

// SessionNewResult is the created session. The connection is attached to it.
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

// SessionListParams selects sessions. The result is sorted newest first.
type SessionListParams struct {
	Cwd      string `json:"cwd,omitempty"`
	Archived bool   `json:"archived,omitempty"`
	Children bool   `json:"children,omitempty"` // include sessions of subagents
	Cursor   string `json:"cursor,omitempty"`
	Limit    int    `json:"limit,omitempty"` // 1 to 200; absent: 50
}

// SessionListResult is a page of sessions.
type SessionListResult struct {
	Data       []Session `json:"data"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// SessionInputsParams selects inputs that people sent.
type SessionInputsParams struct {
	Cwd    string `json:"cwd,omitempty"` // only inputs of sessions in this directory
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"` // 1 to 500; absent: 100. A page holds at most about 1 MiB
}

// SessionInputsResult is a page of inputs, newest first.
type SessionInputsResult struct {
	Data       []SentInput `json:"data"`
	NextCursor string      `json:"nextCursor,omitempty"`
}

// SentInput is the text of an input, and where it was sent last.
type SentInput struct {
	Text      string    `json:"text"`
	SessionID SessionID `json:"sessionId"`
	InputID   InputID   `json:"inputId"`
	TurnID    TurnID    `json:"turnId,omitempty"` // the turn that used it
	AtMs      int64     `json:"atMs"`
}

// SessionSearchParams looks for messages and titles by their words. A word stands for all words that begin with it. Text in double
// quotes is a phrase. A match has all of them. Case, accents and punctuation do not matter.
type SessionSearchParams struct {
	Query    string `json:"query"`
	Cwd      string `json:"cwd,omitempty"`      // only sessions in this directory
	Archived bool   `json:"archived,omitempty"` // search archived sessions instead of the others
	Children bool   `json:"children,omitempty"` // also search sessions of subagents
	Distinct bool   `json:"distinct,omitempty"` // list each session once, with its first match
	Cursor   string `json:"cursor,omitempty"`
	Limit    int    `json:"limit,omitempty"` // 1 to 100; absent: 20
}

// SessionSearchResult is a page of matches: titles first, then messages, each newest first. A page can be shorter than the limit, even
// empty, although nextCursor leads to more.
type SessionSearchResult struct {
	Data       []SessionMatch `json:"data"`
	NextCursor string         `json:"nextCursor,omitempty"`
	Pending    int64          `json:"pending,omitempty"` // about how many nodes lashd has not indexed yet, because it is still making the index; repeat the search for their matches
}

// SessionMatch is a title or a message that matches. A message that several sessions share is listed once.
type SessionMatch struct {
	SessionID   SessionID `json:"sessionId"`
	Title       string    `json:"title,omitempty"`
	Cwd         string    `json:"cwd"`
	UpdatedAtMs int64     `json:"updatedAtMs"`      // of the session
	Role        Role      `json:"role,omitempty"`   // user or assistant; absent: the title matches
	NodeID      NodeID    `json:"nodeId,omitempty"` // the message
	TurnID      TurnID    `json:"turnId,omitempty"` // the turn of the message
	AtMs        int64     `json:"atMs,omitempty"`   // of the message
	Left        bool      `json:"left,omitempty"`   // a rewind has removed the message from the session's history
	Snippet     string    `json:"snippet"`          // the text around the match, in one line
}

// ExportFormat is the format of an exported session.
type ExportFormat string

const (
	ExportMarkdown ExportFormat = "markdown" // for people: prompts, answers, a line for each tool call, and the diffs of edits
	ExportJSON     ExportFormat = "json"     // an object with the session and, in nodes, the nodes of its active branch, complete
)

// SessionExportParams selects a session and a format. The document ends at the leaf that the session had at the first request.
type SessionExportParams struct {
	SessionID SessionID    `json:"sessionId"`
	Format    ExportFormat `json:"format"`
	Reasoning bool         `json:"reasoning,omitempty"` // with the model's reasoning in Markdown; JSON always has it
	Cursor    string       `json:"cursor,omitempty"`
}

// SessionExportResult is the next part of the document, at most 1 MiB. The document is all parts, one after the other.
type SessionExportResult struct {
	Text       string `json:"text"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// SessionDocument is what session/export writes as JSON, and what session/import reads.
type SessionDocument struct {
	Format  string          `json:"format"`  // lashd session
	Version int             `json:"version"` // 1
	Session json.RawMessage `json:"session"` // the session; an import takes only its title and, for code cells, its driver
	Nodes   []Node          `json:"nodes"`   // in order, from the oldest; without a frameOpen at the start, lashd adds one
}

// The format and the version of a SessionDocument.
const (
	DocumentFormat  = "lashd session"
	DocumentVersion = 1
)

// SessionImportParams is one part of a SessionDocument. Send the parts in order, starting at offset 0. With done, lashd checks the whole
// document and creates a session with its history before it responds. An invalid document creates nothing, and the error points to the
// place below /document. Until then lashd keeps the parts in memory only. It drops an unfinished upload after ten minutes without a new
// part, and when the daemon stops.
type SessionImportParams struct {
	Mutation
	UploadID string `json:"uploadId"` // chosen by the client
	Offset   int64  `json:"offset,omitempty"`
	Document string `json:"document"` // the next part, at most 1 MiB; the whole has at most 64 MiB and 8,192 nodes
	Done     bool   `json:"done,omitempty"`
	Cwd      string `json:"cwd,omitempty"`   // with done: the workspace of the session: absolute path of a directory
	Title    string `json:"title,omitempty"` // absent: that of the document or its first input
	Model    string `json:"model,omitempty"` // a name from model/list; absent: the default
}

// SessionImportResult reports the progress of an import and, with done, the new session. No client is attached to it.
type SessionImportResult struct {
	Received int64    `json:"received"`
	Session  *Session `json:"session,omitempty"`
	Missing  int      `json:"missing,omitempty"` // files of the history whose contents lashd does not have; text takes their place
	Replayable
}

// SessionReadParams selects a page of a session's items, going back from a cursor.
type SessionReadParams struct {
	SessionID SessionID `json:"sessionId"`
	Cursor    string    `json:"cursor,omitempty"` // absent: start at the newest
	Limit     int       `json:"limit,omitempty"`  // number of nodes, 1 to 500; absent: 200. A page holds at most about 4 MiB
}

// SessionReadResult is a page of items in order. nextCursor leads to older items.
type SessionReadResult struct {
	Session      Session `json:"session"`
	CodeLanguage string  `json:"codeLanguage,omitempty"` // of the session's code cells, which never changes; absent: no turn has settled it
	Data         []Item  `json:"data"`
	NextCursor   string  `json:"nextCursor,omitempty"`
}

// SessionAttachParams subscribes the connection to a session.
type SessionAttachParams struct {
	SessionID SessionID `json:"sessionId"`
	AfterSeq  *Seq      `json:"afterSeq,omitempty"` // replay the events after this one; absent: start with a snapshot
	Epoch     int64     `json:"epoch,omitempty"`    // the epoch in which the client saw afterSeq
}

// SessionAttachResult is the state of the session as of seq. Every durable event after seq follows once, in order.
type SessionAttachResult struct {
	Session    Session       `json:"session"`
	Items      []Item        `json:"items,omitempty"` // items of the newest 200 nodes, at most about 4 MiB; absent in a replay
	NextCursor string        `json:"nextCursor,omitempty"`
	OpenItems  []Item        `json:"openItems,omitempty"` // items in progress, with their text so far
	Decisions  []Decision    `json:"decisions"`           // open decisions, including those of subagents
	Queue      []QueuedInput `json:"queue"`
	Tasks      []Task        `json:"tasks"`
	TurnID     TurnID        `json:"turnId,omitempty"`  // the running turn
	Entered    []QueuedInput `json:"entered,omitempty"` // inputs that have entered the running turn and are not items yet
	Seq        Seq           `json:"seq"`
	Context    *Usage        `json:"context,omitempty"` // of the newest model call in the history, which shows how full the context window is; absent: no call since the history was compacted, or a replay
	Gap        *Gap          `json:"gap,omitempty"`     // set if the events after afterSeq cannot be replayed; the result is a snapshot then
}

// SessionConfigureParams changes settings from the next turn on. Absent settings stay unchanged.
type SessionConfigureParams struct {
	Mutation
	SessionID      SessionID           `json:"sessionId"`
	Model          string              `json:"model,omitempty"`
	Effort         *string             `json:"effort,omitempty"` // one of the model's reasoning efforts; absent: unchanged, or with model its own setting; "": the model's default
	Prompt         *string             `json:"prompt,omitempty"`
	Budget         *Budget             `json:"budget,omitempty"`
	Approval       *ApprovalConfig     `json:"approval,omitempty"`
	Generation     *GenerationOptions  `json:"generation,omitempty"`
	GenerationMode OverlayMode         `json:"generationMode,omitempty"` // absent: replace
	Options        PluginOptions       `json:"options,omitempty"`
	Unknown        *UnknownOutcomeRule `json:"unknownOutcome,omitempty"`
	Drain          DrainPolicy         `json:"drain,omitempty"` // absent: unchanged
}

// HeadResult is the head of a session after a change.
type HeadResult struct {
	Head Head `json:"head"`
	Seq  Seq  `json:"seq"`
	Replayable
}

// ClientTool is a tool that the client runs. lashd requests calls with tool/requested events.
type ClientTool struct {
	ToolManifest
	Replay     Replay `json:"replay,omitempty"`     // absent: never
	DeadlineMs int64  `json:"deadlineMs,omitempty"` // time limit of a call; absent: two minutes
}

// SessionOverlayParams replaces the overlay of a session. The newest overlay counts. An empty overlay does not remove the overlay of
// another client that is connected.
type SessionOverlayParams struct {
	Mutation
	SessionID        SessionID    `json:"sessionId"`
	IncludeBaseTools *bool        `json:"includeBaseTools,omitempty"` // also offer the session's own tools; absent: true
	Tools            []ClientTool `json:"tools,omitempty"`
	Prompt           string       `json:"prompt,omitempty"`
	MCPServers       MCPServers   `json:"mcpServers,omitempty"`     // removed when the client disconnects; absent: none
	WhileConnected   bool         `json:"whileConnected,omitempty"` // also remove the tools and the prompt 30 seconds after the client disconnects
}

// SessionOverlayResult holds the tool settings after a change of the overlay.
type SessionOverlayResult struct {
	Tools ToolState `json:"tools"`
	Seq   Seq       `json:"seq"`
	Replayable
}

// SessionSetTitleParams sets the title of a session.
type SessionSetTitleParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Title     string    `json:"title"`
}

// SessionArchiveParams archives a session.
type SessionArchiveParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	Undo      bool      `json:"undo,omitempty"` // take it out of the archive instead
}

// SessionForkParams creates a session that shares this session's history.
type SessionForkParams struct {
	Mutation
	SessionID   SessionID   `json:"sessionId"`
	AtNode      NodeID      `json:"atNode,omitempty"` // a node on the active branch or a pinned node; absent: the leaf
	Title       string      `json:"title,omitempty"`
	ToolCatalog ForkCatalog `json:"toolCatalog,omitempty"`
}

// ForkCatalog says which tool settings a fork starts with.
type ForkCatalog string

const (
	ForkInherit ForkCatalog = "inherit" // the source session's current settings; the default
	ForkFresh   ForkCatalog = "fresh"   // the settings of a new session
)

// SessionRewindParams moves the leaf to an ancestor, restores files, or both. The abandoned branch stays, pinned. Files are restored
// to their state before the first abandoned turn.
type SessionRewindParams struct {
	Mutation
	SessionID SessionID   `json:"sessionId"`
	ToNode    NodeID      `json:"toNode,omitempty"`  // the new leaf
	ToTurn    TurnID      `json:"toTurn,omitempty"`  // instead of toNode: rewind to before this turn
	ToPoint   PointID     `json:"toPoint,omitempty"` // instead of toNode, with files only: restore files to before this file point
	Files     RewindFiles `json:"files,omitempty"`   // absent: do not restore files
	DryRun    bool        `json:"dryRun,omitempty"`  // show what would change without doing it
	Force     bool        `json:"force,omitempty"`   // overwrite conflicting files; files that cannot be restored stay unchanged
}

// RewindFiles says whether a rewind restores files, history or both.
type RewindFiles string

const (
	RewindAlso RewindFiles = "also" // rewind history and restore files
	RewindOnly RewindFiles = "only" // restore files; history stays
)

// SessionRewindResult describes the abandoned branch and the changed files.
type SessionRewindResult struct {
	Head   Head         `json:"head"`
	Pinned NodeID       `json:"pinned,omitempty"` // the leaf before the rewind, now pinned
	Nodes  int64        `json:"nodes"`            // number of abandoned nodes
	Seq    Seq          `json:"seq"`
	Point  PointID      `json:"pointId,omitempty"` // the file point of this undo; rewind to it to revert the undo; absent: no file changed
	Files  []FileRewind `json:"files,omitempty"`   // the changed files
	Replayable
}

// SessionPointsResult lists file points, oldest first.
type SessionPointsResult struct {
	Data []FilePoint `json:"data"`
}

// SessionDiffParams selects the file changes of a session, a turn or a file point.
type SessionDiffParams struct {
	SessionID SessionID `json:"sessionId"`
	TurnID    TurnID    `json:"turnId,omitempty"`
	PointID   PointID   `json:"pointId,omitempty"`
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // number of files, 1 to 500; absent: 100
}

// SessionDiffResult is a page of changed files, sorted by path. It shows the recorded changes, not the current files.
type SessionDiffResult struct {
	Data       []FileDiff  `json:"data"`
	Points     []FilePoint `json:"points"` // the file points that made the changes
	NextCursor string      `json:"nextCursor,omitempty"`
}

// SeqResult is the result of a change: the sequence number of its last event.
type SeqResult struct {
	Seq Seq `json:"seq"`
	Replayable
}

// SessionWaitParams waits until no turn of a session is running or queued.
type SessionWaitParams struct {
	SessionID SessionID `json:"sessionId"`
	TimeoutMs int64     `json:"timeoutMs,omitempty"` // absent: no limit
}

// SessionWaitResult is the state of the session at the end of the wait.
type SessionWaitResult struct {
	State SessionState `json:"state"`
	Seq   Seq          `json:"seq"`
}

// SessionCompactParams compacts the history of a session.
type SessionCompactParams struct {
	Mutation
	SessionID    SessionID `json:"sessionId"`
	Instructions string    `json:"instructions,omitempty"` // for the author of the summary
}

// SessionExtensionParams sends a message to the session's driver.
type SessionExtensionParams struct {
	Mutation
	SessionID SessionID       `json:"sessionId"`
	Extension json.RawMessage `json:"extension"`
}

// SessionCompactResult reports whether history was compacted. compacted is false if no plugin had anything to summarize.
type SessionCompactResult struct {
	Compacted bool   `json:"compacted"`
	Plugin    string `json:"plugin,omitempty"` // the plugin that wrote the summary
	Head      Head   `json:"head"`
	Seq       Seq    `json:"seq"`
	Replayable
}
