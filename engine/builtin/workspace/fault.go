package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// fault is a failure that the model can usually do something about.
//
// It becomes the failure of the tool result: class and code are for programs, and the
// message explains to the model what failed and how to continue. Errors that are not
// faults, such as those of the file system, get a class and a code in failed.
type fault struct {
	class   protocol.FailureClass
	code    string
	message string
}

func (f *fault) Error() string { return f.message }

var (
	// Faults that several tools share.
	errOutside   = &fault{protocol.FailPermission, "outside_workspace", "the path leads outside the workspace"}
	errProtected = &fault{protocol.FailPermission, "protected_path", "the path leads to lashd's own files, which tools must not use"}
	errKernel    = &fault{protocol.FailPermission, "not_regular", "file tools do not open kernel files, such as those in /proc and /sys"}
	errElsewhere = &fault{protocol.FailPermission, "leads_elsewhere", "the path leads to another place than when the call was approved; check the path and call again"}
	errBadPath   = &fault{protocol.FailInvalidRequest, "invalid_path", "the path contains a NUL byte"}
	errLoop      = &fault{protocol.FailIO, "symlink_loop", "the path has too many symbolic links"}
	errMoved     = &fault{protocol.FailIO, "changed_meanwhile", "another program changed or replaced the file during the call; read it again"}
	errNotShown  = &fault{protocol.FailIO, "changed_since_approval", "the file has changed since the approval request showed this change, so nothing was changed; read it again"}
	errDirectory = &fault{protocol.FailInvalidRequest, "is_directory", "this is a directory; use list to see its contents"}
	errIrregular = &fault{protocol.FailPermission, "not_regular", "this is not a regular file (a pipe, socket or device), which file tools do not open"}
)

// maxMessage is the length in bytes of a fault's message, which may quote arguments.
const maxMessage = 2000

// refuse returns the fault for invalid arguments.
func refuse(code, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return &fault{protocol.FailInvalidRequest, code, text}
}

// explained names the tool and the file in the error of a call that changes files, and says that a patch changed nothing unless restoring
// failed; nil for nil.
func explained(tool, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case tool != "patch":
		return fmt.Errorf("%s %s: %w", tool, path, err)
	case errors.Is(err, errHalfway):
		return fmt.Errorf("patch: %w", err)
	}
	return fmt.Errorf("patch, nothing was changed: %w", err)
}

// certain reports whether a call that could not be planned for this reason would fail in the same way now: its arguments do not fit the
// files, or lead to files that the tools never open. Files that could not be read say nothing about the call.
func certain(err error) bool {
	f, ok := errors.AsType[*fault](err)
	if !ok {
		return errors.Is(err, fs.ErrNotExist)
	}
	return f != errElsewhere && (f.class == protocol.FailInvalidRequest || f.class == protocol.FailPermission)
}

// failed converts an error to the result of a call. An outcome that is unknown after a
// timeout has its own status, so that it is not mistaken for a failure that changed
// nothing.
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
	case errors.Is(err, pathresolve.ErrElsewhere):
		return protocol.Fail(protocol.FailPermission, tool.WorkspaceElsewhere, text, protocol.FromTool)
	case errors.Is(err, fs.ErrNotExist):
		return protocol.Fail(protocol.FailIO, "not_found", text, protocol.FromTool)
	case errors.Is(err, fs.ErrPermission):
		return protocol.Fail(protocol.FailPermission, "permission_denied", text, protocol.FromTool)
	}
	return protocol.Fail(protocol.FailIO, "io", text, protocol.FromTool)
}
