package workspace

import (
	"context"
	"errors"
	"time"

	"lashd/internal/deadline"
	"lashd/rpc/protocol"
)

// patience limits the time of a call. Without a limit, a file system that hangs, such as a
// network mount without a server, would block the turn.
const patience = 2 * time.Minute

var (
	// errHangs is the failure of a reading call that exceeded patience.
	errHangs = &fault{protocol.FailTimeout, "timeout", "reading did not finish within " + patience.String() +
		"; the file system may hang, or this is too much data: try another path or a smaller part"}

	// errUnchanged is the failure of a changing call that was abandoned before it changed anything. It cannot change anything later.
	errUnchanged = &fault{protocol.FailTimeout, "timeout", "nothing was changed, because reading the files and preparing the change did not finish within " +
		patience.String() + "; the file system may hang"}

	// errUnknown means that a call was abandoned while it changed files.
	errUnknown = errors.New("the change did not finish within " + patience.String() + "; the file system may hang. The files may or may not " +
		"be changed, now or later. Read them before you continue")
)

// work is the body of a call. It passes the gate immediately before it changes the first
// file.
type work = func(context.Context, *deadline.Gate) (protocol.ToolOutput, error)

// inTime runs the work of a call. It abandons the work after patience or when ctx ends.
// Abandoned work continues in the background until the file system answers, but changes
// nothing unless it has already passed the gate.
func inTime(ctx context.Context, changes bool, do work) (protocol.ToolOutput, error) {
	cause := error(errHangs)
	if changes {
		cause = errUnchanged
	}
	return deadline.Change(ctx, patience, cause, errUnknown, do)
}
