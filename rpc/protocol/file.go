package protocol

// PointID names a file point: fpt_...
type PointID string

// NewPointID returns an id that was never used.
func NewPointID() PointID { return PointID(newID("fpt_")) }

// FileKind is what stands at a path of a workspace.
type FileKind string

const (
	FileRegular   FileKind = "file"
	FileLink      FileKind = "link"      // a symbolic link, which is never followed
	FileDirectory FileKind = "directory" // without what is in it
	FileUnknown   FileKind = "unknown"   // something was there, and nobody looked at it
)

// FileProblem is why lashd has no copy of a file, so that it cannot be brought back.
type FileProblem string

const (
	FileTooLarge   FileProblem = "tooLarge"   // larger than what is copied
	FileUnreadable FileProblem = "unreadable" // lashd may not read it, or it is no file, link or directory
	FileLate       FileProblem = "late"       // it was not read before tools went to work: there was too much to read
	FileNoRoom     FileProblem = "noRoom"     // the budget for copies is used up
	FileIgnored    FileProblem = "ignored"    // it was ignored until then
	FilePrivileged FileProblem = "privileged" // whoever runs it has the rights of its owner or group
)

// FileState is what stands at a path at a moment. Nothing there is no state.
type FileState struct {
	Kind    FileKind    `json:"kind"`
	Mode    uint32      `json:"mode,omitempty"` // permissions, with setuid, setgid and sticky
	Size    int64       `json:"size,omitempty"`
	Digest  Digest      `json:"digest,omitempty"`  // of the content of a file, if there is a copy
	Link    string      `json:"link,omitempty"`    // where a link leads
	Problem FileProblem `json:"problem,omitempty"` // why there is no copy
}

// PointKind is what changed files.
type PointKind string

const (
	PointTurn   PointKind = "turn"   // the tools of a turn
	PointRewind PointKind = "rewind" // a rewind
)

// PointState is where a file point is.
type PointState string

const (
	PointOpen   PointState = "open"   // its turn goes on, or its rewind
	PointClosed PointState = "closed" // it is over
)

// FilePoint is what one turn, or one rewind, did to the files of a workspace: of each what it was before, and after. Files can
// be brought back to how they were before it.
type FilePoint struct {
	ID           PointID    `json:"pointId"`
	SessionID    SessionID  `json:"sessionId"`
	Kind         PointKind  `json:"kind"`
	State        PointState `json:"state"`
	TurnID       TurnID     `json:"turnId,omitempty"`
	To           PointID    `json:"to,omitempty"` // of a rewind: files are as they were before this point
	AtMs         int64      `json:"atMs"`
	Files        int        `json:"files"`                  // how many it changed
	Unkept       int        `json:"unkept,omitempty"`       // of these, without a copy of what they were before
	Unrestorable string     `json:"unrestorable,omitempty"` // why files cannot be brought back to before it; absent: they can
	Undone       bool       `json:"undone,omitempty"`       // by a rewind that came later
}

// FileEffect is what is done to a file.
type FileEffect string

const (
	FileCreated  FileEffect = "created"
	FileModified FileEffect = "modified"
	FileDeleted  FileEffect = "deleted"
)

// FileConflict is why a file is brought back by force only: something would be lost.
type FileConflict string

const (
	ConflictChanged FileConflict = "changedSince" // somebody changed the file after the turn, or between its tools
	ConflictShared  FileConflict = "shared"       // another session was at work at that moment: it may have made the change
	ConflictUnsure  FileConflict = "unsure"       // lashd was interrupted in the turn: somebody else may have made the change
	ConflictNotKept FileConflict = "notKept"      // there is no copy of what is there now
)

// FileRewind is what a rewind does to a file.
type FileRewind struct {
	Path     string       `json:"path"` // from the workspace, with slashes
	Effect   FileEffect   `json:"effect"`
	Kind     FileKind     `json:"kind"`
	Added    int          `json:"added,omitempty"`   // lines
	Removed  int          `json:"removed,omitempty"` // lines
	Binary   bool         `json:"binary,omitempty"`  // the lines are not counted
	Conflict FileConflict `json:"conflict,omitempty"`
	Unkept   FileProblem  `json:"unkept,omitempty"`  // there is no copy of what it was: it stays as it is
	Problem  string       `json:"problem,omitempty"` // why it stayed as it was although it was to be brought back
}

// FileDiff is a change of a file that a turn made, or a session.
type FileDiff struct {
	Path    string      `json:"path"`
	Effect  FileEffect  `json:"effect"`
	Kind    FileKind    `json:"kind"`
	Before  *FileState  `json:"before,omitempty"`
	After   *FileState  `json:"after,omitempty"`
	Added   int         `json:"added,omitempty"`   // lines
	Removed int         `json:"removed,omitempty"` // lines
	Binary  bool        `json:"binary,omitempty"`
	Diff    string      `json:"diff,omitempty"` // unified; absent where there is none, or where it would be too long
	Cut     bool        `json:"cut,omitempty"`  // the diff is too long
	Unkept  FileProblem `json:"unkept,omitempty"`
}
