package watch

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"
)

// Bounds limit the cost of one root, in addition to the Limits of the Watcher. Roots of a workspace
// have them, because the workspace may be hostile. The zero value adds no limit.
type Bounds struct {
	Within  string // ignore directories outside this one, with links resolved; empty: no limit
	Entries int    // files and directories in all plugins of the root; 0: no limit
	Dirs    int    // watched directories of the root; 0: no limit
}

// of returns the limits of a root with these bounds.
func (l Limits) of(b Bounds) Limits {
	l.Total = min(l.Total, cmp.Or(b.Entries, l.Total))
	l.dirs = b.Dirs
	return l
}

// outside reports whether a directory, with links resolved, is outside Within.
func (b Bounds) outside(dir string) bool {
	if b.Within == "" || dir == b.Within {
		return false
	}
	rest, inside := strings.CutPrefix(dir, strings.TrimSuffix(b.Within, string(filepath.Separator))+string(filepath.Separator))
	return !inside || rest == ""
}

// After a scan of a root with bounds, the loop skips the root for restFactor times the duration of
// the scan, at most restMost. So a directory that changes all the time takes at most a tenth of a
// processor.
const (
	restFactor = 10
	restMost   = time.Minute
)

// looked records a scan from begin to now. A root without bounds is the user's own and needs no
// rest.
func (r *root) looked(begin, now time.Time) {
	if r.bounds != (Bounds{}) {
		r.rest = now.Add(min(restFactor*now.Sub(begin), restMost))
	}
}
