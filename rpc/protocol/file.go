package protocol

// PointID names a file point: fpt_...
type PointID string

// NewPointID returns a new unique id.
func NewPointID() PointID { return PointID(newID("fpt_")) }

// FileKind is the kind of a file system entry.
type FileKind string

const (
	FileRegular   FileKind = "file"
	FileLink      FileKind = "link"      // a symbolic link; lashd never follows it
	FileDirectory FileKind = "directory" // the directory itself, without its contents
	FileUnknown   FileKind = "unknown"   // something existed there, but lashd did not examine it
)

// FileProblem says why lashd has no copy of a file and cannot restore it.
type FileProblem string

const (
	FileTooLarge   FileProblem = "tooLarge"   // larger than the limit for copies
	FileUnreadable FileProblem = "unreadable" // lashd cannot read it, or it is not a file, link or directory
	FileLate       FileProblem = "late"       // lashd could not copy it before the tools started, because there was too much to read
	FileNoRoom     FileProblem = "noRoom"     // the space limit for copies is reached
	FileIgnored    FileProblem = "ignored"    // it was ignored before the turn
	FilePrivileged FileProblem = "privileged" // setuid or setgid: running it grants the rights of its owner or group
)

// FileState describes the file at a path at one time. A missing file has no FileState.
type FileState struct {
	Kind    FileKind    `json:"kind"`
	Mode    uint32      `json:"mode,omitempty"` // Unix permission bits, including setuid, setgid and sticky
	Size    int64       `json:"size,omitempty"`
	Digest  Digest      `json:"digest,omitempty"`  // of the file's contents, if lashd has a copy
	Link    string      `json:"link,omitempty"`    // target of a symbolic link
	Problem FileProblem `json:"problem,omitempty"` // why lashd has no copy
}

// PointKind says what changed the files of a file point.
type PointKind string

const (
	PointTurn   PointKind = "turn"   // the tools of a turn
	PointRewind PointKind = "rewind" // an undo
)

// PointState is the state of a file point.
type PointState string

const (
	PointOpen   PointState = "open"   // its turn or undo is still running
	PointClosed PointState = "closed" // its turn or undo has ended
)

// FilePoint records the file changes of one turn or one undo: the state of each file before and after. session/rewind restores
// files to their state before a file point.
type FilePoint struct {
	ID           PointID    `json:"pointId"`
	SessionID    SessionID  `json:"sessionId"`
	Kind         PointKind  `json:"kind"`
	State        PointState `json:"state"`
	TurnID       TurnID     `json:"turnId,omitempty"`
	To           PointID    `json:"to,omitempty"` // of an undo: it restored files to before this point
	AtMs         int64      `json:"atMs"`
	Files        int        `json:"files"`                  // number of changed files and links
	Directories  int        `json:"directories,omitempty"`  // number of directories that were created, deleted or got another mode; their files count in files
	Unkept       int        `json:"unkept,omitempty"`       // number of all these without a copy of their earlier state
	Unrestorable string     `json:"unrestorable,omitempty"` // why files cannot be restored to before this point; absent: they can
	Undone       bool       `json:"undone,omitempty"`       // a later undo reverted it
}

// Changed reports whether anything changed.
func (p *FilePoint) Changed() bool { return p.Files+p.Directories > 0 }

// FileEffect says how a file changes.
type FileEffect string

const (
	FileCreated  FileEffect = "created"
	FileModified FileEffect = "modified"
	FileDeleted  FileEffect = "deleted"
)

// FileConflict says why restoring a file would lose changes. Only force restores it.
type FileConflict string

const (
	ConflictChanged FileConflict = "changedSince" // the file was changed after the turn, or between its tool calls
	ConflictShared  FileConflict = "shared"       // another session was running at that time and may have made the change
	ConflictUnsure  FileConflict = "unsure"       // lashd was interrupted during the turn; another program may have made the change
	ConflictNotKept FileConflict = "notKept"      // lashd has no copy of the current file
)

// FileRewind is what an undo does to one file.
type FileRewind struct {
	Path     string       `json:"path"` // relative to the workspace, with slashes
	Effect   FileEffect   `json:"effect"`
	Kind     FileKind     `json:"kind"`
	Added    int          `json:"added,omitempty"`   // lines
	Removed  int          `json:"removed,omitempty"` // lines
	Binary   bool         `json:"binary,omitempty"`  // a binary file; lines are not counted
	Conflict FileConflict `json:"conflict,omitempty"`
	Unkept   FileProblem  `json:"unkept,omitempty"`  // lashd has no copy of the earlier file, so it stays unchanged
	Problem  string       `json:"problem,omitempty"` // why restoring the file failed
}

// FileDiff is the change of one file by a turn or a session. A directory has none: only its files do.
type FileDiff struct {
	Path    string      `json:"path"`
	Effect  FileEffect  `json:"effect"`
	Kind    FileKind    `json:"kind"`
	Before  *FileState  `json:"before,omitempty"`
	After   *FileState  `json:"after,omitempty"`
	Added   int         `json:"added,omitempty"`   // lines
	Removed int         `json:"removed,omitempty"` // lines
	Binary  bool        `json:"binary,omitempty"`
	Diff    string      `json:"diff,omitempty"` // unified diff; absent if there is none or it would be too long
	Cut     bool        `json:"cut,omitempty"`  // the diff was left out because it is too long
	Unkept  FileProblem `json:"unkept,omitempty"`
}
