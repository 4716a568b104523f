package workspace

import (
	"context"
	"errors"
	"time"

	"lashd/internal/deadline"
	"lashd/rpc/protocol"
)

// patience bounds a call. A file system that hangs, such as a network mount whose server is gone, would hold the turn otherwise.
const patience = 2 * time.Minute

var (
	// errHangs is the failure of a call that only reads and took longer than patience.
	errHangs = &fault{protocol.FailTimeout, "timeout", "reading did not finish within " + patience.String() +
		"; the file system may hang, or this is too much at once: try another path or a smaller part"}

	// errUnchanged is the failure of a call that was given up before it changed anything, and does not any more.
	errUnchanged = &fault{protocol.FailTimeout, "timeout", "nothing was changed, because the files could not be read and the change prepared within " +
		patience.String() + "; the file system may hang"}

	// errUnknown means that a call was given up while it changed files.
	errUnknown = errors.New("the change did not finish within " + patience.String() + "; the file system may hang. Nobody knows whether the files " +
		"are changed, or still will be. Read them before you go on")
)

// work is what a call does. It passes the gate at the last moment before it changes a file.
type work = func(context.Context, *deadline.Gate) (protocol.ToolOutput, error)

// inTime does the work of a call, and gives up on it after patience or when ctx ends. What is given up goes on in the background until the file
// system answers. It changes nothing then, unless it had begun to.
func inTime(ctx context.Context, changes bool, do work) (protocol.ToolOutput, error) {
	cause := error(errHangs)
	if changes {
		cause = errUnchanged
	}
	return deadline.Change(ctx, patience, cause, errUnknown, do)
}
