package pathresolve

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// OpenDir opens a directory of a stored workspace. name is absolute or relative to the workspace. It
// fails if the path leads out of the workspace when it is opened, or with an ElsewhereError. The
// returned path has no links.
func OpenDir(workspace, name string) (dir *os.File, at string, err error) {
	root, err := OpenWorkspace(workspace)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	real, err := Real(absolute(workspace, name))
	if err != nil {
		return nil, "", err
	}
	rel, err := filepath.Rel(workspace, real)
	if err != nil {
		return nil, "", err
	}
	if dir, err = openIn(root, rel); err != nil {
		return nil, "", err
	}
	return dir, pathOf(dir, real), nil
}

// openIn opens a directory within root. A part of rel that has become a link must not lead out of
// root.
func openIn(root *os.Root, rel string) (*os.File, error) {
	sub, err := root.OpenRoot(rel + "/.") // with the dot only a directory opens; opening a pipe would block
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	return sub.Open(".")
}

// OpenWorkdir opens the working directory of a command. A path below the stored workspace must lead to a
// directory in it. Other paths may lead anywhere.
func OpenWorkdir(workspace, name string) (dir *os.File, at string, err error) {
	if Below(workspace, name) {
		return OpenDir(workspace, name)
	}
	if dir, err = os.Open(name + string(filepath.Separator) + "."); err != nil {
		return nil, "", err
	}
	return dir, name, nil
}

// Below reports whether a path is written as one below dir, or below the directory that dir leads
// to. It does not follow links in name.
func Below(dir, name string) bool {
	tops := []string{dir}
	if real, err := Existing(dir); err == nil {
		tops = append(tops, real)
	}
	for _, top := range tops {
		rel, err := filepath.Rel(top, name)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// pathOf returns the current path of an open directory on Linux, else otherwise.
func pathOf(dir *os.File, otherwise string) string {
	if runtime.GOOS != "linux" {
		return otherwise
	}
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil || !filepath.IsAbs(at) {
		return otherwise
	}
	return at
}
