package pathresolve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// ErrElsewhere is what every ElsewhereError is.
var ErrElsewhere = errors.New("the path of the workspace leads elsewhere")

// ElsewhereError means that the path of a stored workspace leads to another directory now, because a link replaced a directory in it.
// A command in the workspace of another session may have made that link, if that workspace contains this one.
type ElsewhereError struct {
	Workspace string // the stored path
	Leads     string // where it leads now
}

// Error describes what happened, and what to do.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the path of the workspace %q contains a link now and leads to %q; if you do not know that link, remove it, else start a new session in %q",
		e.Workspace, e.Leads, e.Leads)
}

// Is reports whether target is ErrElsewhere.
func (e *ElsewhereError) Is(target error) bool { return target == ErrElsewhere }

// Workspace returns the path under which a directory is stored as a workspace: where the given path leads, without links. Each later
// use of that path calls CheckWorkspace or OpenWorkspace.
func Workspace(name string) (string, error) {
	if !filepath.IsAbs(name) {
		return "", &os.PathError{Op: "open", Path: name, Err: os.ErrInvalid}
	}
	at, info, err := Follow(name, nil)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	return at, err
}

// CheckWorkspace returns an ElsewhereError if the path of a stored workspace contains a link now. A directory that was deleted and made
// again, restored or mounted is still the workspace: only its path identifies it.
func CheckWorkspace(at string) error {
	leads, err := Workspace(at)
	if err == nil && leads != filepath.Clean(at) {
		err = &ElsewhereError{at, leads}
	}
	return err
}

// Elsewhere is CheckWorkspace without other errors, such as that the directory is gone. It returns nil for those, and for an empty path.
func Elsewhere(at string) error {
	if err := CheckWorkspace(at); errors.Is(err, ErrElsewhere) {
		return err
	}
	return nil
}

// OpenWorkspace opens a stored workspace. It fails with an ElsewhereError if its path contains a link now. On Linux, no link that is
// there only for a moment can lead it elsewhere.
func OpenWorkspace(at string) (*os.Root, error) {
	if err := CheckWorkspace(at); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, err
	}
	if err := checkRoot(root, at); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// checkRoot returns an error unless an open directory is the one at a path without links.
func checkRoot(root *os.Root, at string) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if runtime.GOOS == "linux" && pathOf(dir, at) == filepath.Clean(at) {
		return nil
	}
	if err := CheckWorkspace(at); err != nil {
		return err
	}
	is, err := dir.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(at); runtime.GOOS == "linux" || err != nil || !os.SameFile(is, there) {
		return ErrReplaced
	}
	return nil
}
