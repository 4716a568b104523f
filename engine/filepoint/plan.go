package filepoint

import (
	"maps"
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Undo is the combined effect of several file points on one path.
type Undo struct {
	Path string
	// Before is the state to restore. Nil: the path did not exist.
	Before *protocol.FileState
	// After is the state that the newest of the points left.
	After *protocol.FileState
	// Broken means that another program changed the file between two of the points.
	Broken bool
	// Shared means that a session outside of the points may have made the change.
	Shared bool
	// Unsure means that lashd was interrupted, so another program may have made the change.
	Unsure bool
}

// Undone combines the changes of some points by path, sorted by path. changes must contain
// all changes of the workspace in the order of their steps, including those of other
// points.
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
		case last[c.Path] == c.Step: // a session and its subagent share the change
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

// markShared sets Shared on paths that another point changed in the same step.
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

// EffectOf returns what a change from one state to another does to a path.
func EffectOf(from, to *protocol.FileState) protocol.FileEffect {
	switch {
	case from == nil:
		return protocol.FileCreated
	case to == nil:
		return protocol.FileDeleted
	}
	return protocol.FileModified
}

// Unkept returns the reason why a state cannot be restored, or "" if it can.
func Unkept(s *protocol.FileState) protocol.FileProblem {
	if s == nil {
		return ""
	}
	return s.Problem
}
