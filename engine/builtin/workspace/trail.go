package workspace

import (
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
