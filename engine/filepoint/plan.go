package filepoint

import (
	"maps"
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Undo is what became of a path in points that are to be undone.
type Undo struct {
	Path   string
	Before *protocol.FileState // what it is to be again; nil: nothing
	After  *protocol.FileState // what the newest of the points left
	Broken bool                // between them somebody else changed it
	Shared bool                // a session was at work that is none of those
	Unsure bool                // lashd was interrupted: somebody else may have changed it
}

// Undone sums up what points did: changes are those of a workspace in the order in which they were seen, whoever made them.
func Undone(changes []persistence.FileChange, points map[protocol.PointID]bool) []Undo {
	sums := map[string]*Undo{}
	last := map[string]int64{} // step in which a point changed the path last
	for _, c := range changes {
		if !points[c.Point] {
			continue
		}
		sum, known := sums[c.Path]
		switch {
		case !known:
			sum = &Undo{Path: c.Path, Before: c.Before, After: c.After}
			sums[c.Path] = sum
		case last[c.Path] == c.Step: // a session and one that works for it
		default:
			sum.Broken = sum.Broken || !Equal(sum.After, c.Before)
			sum.After = c.After
		}
		sum.Unsure = sum.Unsure || c.Unsure
		last[c.Path] = c.Step
	}
	markShared(changes, points, sums)
	all := make([]Undo, 0, len(sums))
	for _, p := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, *sums[p])
	}
	return all
}

// markShared finds changes that others may have made: those seen in the same step.
func markShared(changes []persistence.FileChange, points map[protocol.PointID]bool, sums map[string]*Undo) {
	type place struct {
		step int64
		path string
	}
	mine := map[place]bool{}
	for _, c := range changes {
		if points[c.Point] {
			mine[place{c.Step, c.Path}] = true
		}
	}
	for _, c := range changes {
		if !points[c.Point] && mine[place{c.Step, c.Path}] {
			sums[c.Path].Shared = true
		}
	}
}

// EffectOf is what turns one state into another.
func EffectOf(from, to *protocol.FileState) protocol.FileEffect {
	switch {
	case from == nil:
		return protocol.FileCreated
	case to == nil:
		return protocol.FileDeleted
	}
	return protocol.FileModified
}

// Unkept tells why a state cannot be brought about; empty: it can.
func Unkept(s *protocol.FileState) protocol.FileProblem {
	if s == nil {
		return ""
	}
	return s.Problem
}
