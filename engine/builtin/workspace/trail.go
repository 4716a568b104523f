package workspace

import (
	"os"
	"path"
	"slices"
	"strings"
)

// trail is the open directories from the workspace down to the current position of a walk.
type trail []*dir

func (t trail) last() *dir { return t[len(t)-1] }

func (t *trail) pop() {
	t.last().close()
	*t = (*t)[:len(*t)-1]
}

// rewind returns to the workspace.
func (t *trail) rewind() {
	for len(*t) > 1 {
		t.pop()
	}
}

// drop closes all directories except the root, which belongs to files.
func (t *trail) drop() { t.rewind() }

// leave closes all directories except the last, which it returns to the caller.
func (t trail) leave() *dir {
	for _, d := range t[:len(t)-1] {
		d.close()
	}
	return t.last()
}

// components splits a path and drops empty and "." components.
func components(rel string) []string {
	return slices.DeleteFunc(strings.Split(rel, "/"), func(c string) bool { return c == "" || c == "." })
}

// dir is an open directory that was reached from the root without passing through a
// protected one.
type dir struct {
	root *os.Root
	// path is relative to the workspace, with slashes. "." is the workspace itself.
	path string
}

// close closes the directory, except for the root, which stays open for later calls.
func (d *dir) close() {
	if d.path != "." {
		d.root.Close() // read-only handle: the error has no consequence
	}
}

// place is the result of following a path. If info is set, the path exists: either dir
// itself (rest is empty) or the entry of dir named by rest. Without info, rest has the
// components that would have to be created below dir.
type place struct {
	dir  *dir
	rest []string
	info os.FileInfo
}

// path returns the path relative to the workspace.
func (p place) path() string { return path.Join(append([]string{p.dir.path}, p.rest...)...) }

// name returns the last component. rest must not be empty.
func (p place) name() string { return p.rest[len(p.rest)-1] }
