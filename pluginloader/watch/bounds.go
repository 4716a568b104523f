package watch

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"
)

// Bounds limit what is watched for one root, beside the Limits of the Watcher. The zero value adds nothing to these.
type Bounds struct {
	Within  string // only what is inside this directory, after all links; empty: anything
	Entries int    // of all plugins of the root
	Dirs    int    // directories that are watched for the root
}

// of gives the limits that hold for a root.
func (l Limits) of(b Bounds) Limits {
	l.Total = min(l.Total, cmp.Or(b.Entries, l.Total))
	l.dirs = b.Dirs
	return l
}

// outside tells whether a directory, after all links, is outside the bounds.
func (b Bounds) outside(dir string) bool {
	if b.Within == "" || dir == b.Within {
		return false
	}
	rest, inside := strings.CutPrefix(dir, strings.TrimSuffix(b.Within, string(filepath.Separator))+string(filepath.Separator))
	return !inside || rest == ""
}

// After a look at a root with bounds, which may be hostile, nobody looks at it again for restFactor times as long as the look took, and
// at most restMost: a directory that changes all the time takes no more than a tenth of a processor.
const (
	restFactor = 10
	restMost   = time.Minute
)

// looked notes that somebody looked at a root from begin until now. A root without bounds is the user's own, and never rests.
func (r *root) looked(begin, now time.Time) {
	if r.bounds != (Bounds{}) {
		r.rest = now.Add(min(restFactor*now.Sub(begin), restMost))
	}
}
