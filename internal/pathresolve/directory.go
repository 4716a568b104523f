package pathresolve

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// OpenDir opens a directory of a workspace, by a path that is absolute or begins there. It fails if the path leads out of the
// workspace at the moment when it is opened. The path that it returns has no links in it.
func OpenDir(workspace, name string) (dir *os.File, at string, err error) {
	top, err := Existing(workspace)
	if err != nil {
		return nil, "", err
	}
	real, err := Real(absolute(top, name))
	if err != nil {
		return nil, "", err
	}
	rel, err := filepath.Rel(top, real)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	if dir, err = openIn(root, rel); err != nil {
		return nil, "", err
	}
	return dir, pathOf(dir, real), nil
}

// openIn opens a directory that is in another one. What has been made a link since must not lead out of that.
func openIn(root *os.Root, rel string) (*os.File, error) {
	sub, err := root.OpenRoot(rel + "/.") // the dot insists on a directory: to open a pipe would wait
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	return sub.Open(".")
}

// OpenWorkdir opens the directory that a command is to run in. A path below the workspace must lead to a directory of it; others lead
// wherever they do.
func OpenWorkdir(workspace, name string) (dir *os.File, at string, err error) {
	if Below(workspace, name) {
		return OpenDir(workspace, name)
	}
	if dir, err = os.Open(name + string(filepath.Separator) + "."); err != nil {
		return nil, "", err
	}
	return dir, name, nil
}

// Below tells whether a path is written as one of a directory, or of where that leads.
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

// pathOf is the path of an open directory by now.
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
