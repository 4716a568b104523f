package workspace

import (
	"os"
	"path"
	"slices"
	"strings"
)

// trail is the open directories from the workspace down to where a walk stands.
type trail []*dir

func (t trail) last() *dir { return t[len(t)-1] }

func (t *trail) pop() {
	t.last().close()
	*t = (*t)[:len(*t)-1]
}

func (t *trail) rewind() {
	for len(*t) > 1 {
		t.pop()
	}
}

// drop closes all.
func (t *trail) drop() { t.rewind() }

// leave closes all but the last, which it returns.
func (t trail) leave() *dir {
	for _, d := range t[:len(t)-1] {
		d.close()
	}
	return t.last()
}

func components(rel string) []string {
	return slices.DeleteFunc(strings.Split(rel, "/"), func(c string) bool { return c == "" || c == "." })
}

// dir is an open directory that was reached from the root without passing through a protected one.
type dir struct {
	root *os.Root
	path string // from the workspace, with slashes; "." is the workspace
}

func (d *dir) close() {
	if d.path != "." {
		d.root.Close() // a directory handle: nothing is written through it
	}
}

// place is where a path leads. With info, that is an existing directory (rest is empty) or another entry of dir (rest
// is its name). Without, rest is what would have to be created below dir.
type place struct {
	dir  *dir
	rest []string
	info os.FileInfo
}

func (p place) path() string { return path.Join(append([]string{p.dir.path}, p.rest...)...) }

func (p place) name() string { return p.rest[len(p.rest)-1] }
