package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"lashd/rpc/protocol"
)

// fault is a failure that the model is told about, and can usually do something about.
type fault struct {
	class   protocol.FailureClass
	code    string
	message string
}

func (f *fault) Error() string { return f.message }

var (
	errOutside   = &fault{protocol.FailPermission, "outside_workspace", "the path leads outside the workspace"}
	errProtected = &fault{protocol.FailPermission, "protected_path", "the path leads to lashd's own files, which no tool may touch"}
	errKernel    = &fault{protocol.FailPermission, "not_regular", "file tools do not open kernel files, such as those in /proc and /sys"}
	errElsewhere = &fault{protocol.FailPermission, "leads_elsewhere", "since the call was allowed, the path has changed to lead elsewhere; check where it leads and call again"}
	errBadPath   = &fault{protocol.FailInvalidRequest, "invalid_path", "the path contains a NUL byte"}
	errLoop      = &fault{protocol.FailIO, "symlink_loop", "the path has too many symbolic links"}
	errMoved     = &fault{protocol.FailIO, "changed_meanwhile", "the file was changed or replaced by somebody else during the call; read it again"}
	errDirectory = &fault{protocol.FailInvalidRequest, "is_directory", "this is a directory; use list to see what is in it"}
	errIrregular = &fault{protocol.FailPermission, "not_regular", "this is not a regular file (a pipe, socket or device), which file tools do not open"}
)

// refuse is the answer to arguments that cannot work.
func refuse(code, format string, args ...any) error {
	return &fault{protocol.FailInvalidRequest, code, fmt.Sprintf(format, args...)}
}

// failed tells the model what went wrong.
func failed(err error) protocol.ToolOutput {
	text := err.Error()
	if f, ok := errors.AsType[*fault](err); ok {
		return protocol.Fail(f.class, f.code, text, protocol.FromTool)
	}
	switch {
	case errors.Is(err, errUnknown):
		return protocol.ToolOutput{Status: protocol.OutputUnknown, Text: text}
	case errors.Is(err, context.Canceled):
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "cancelled; " + text}
	case errors.Is(err, context.DeadlineExceeded):
		return protocol.Fail(protocol.FailTimeout, "timeout", text, protocol.FromTool)
	case errors.Is(err, fs.ErrNotExist):
		return protocol.Fail(protocol.FailIO, "not_found", text, protocol.FromTool)
	case errors.Is(err, fs.ErrPermission):
		return protocol.Fail(protocol.FailPermission, "permission_denied", text, protocol.FromTool)
	}
	return protocol.Fail(protocol.FailIO, "io", text, protocol.FromTool)
}
