package undo

import (
	"fmt"
	"slices"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxRewind is the maximum number of files that one rewind changes. Their rows are in one commit.
const maxRewind = 10_000

// plan collects the file changes of a rewind before any of them happens. It reads and changes no
// files.
type plan struct {
	// anyway skips the conflict checks, for a forced rewind and for a dry run.
	anyway bool
	// files is the report for the client: every path that is not already as it was.
	files []protocol.FileRewind
	// steps are the changes to make: files without those that cannot be restored.
	steps []filepoint.Step
}

// pointsToUndo returns the points whose changes in the workspace root the plan undoes. Without
// anyway it returns an UnrestorableError for a point in another workspace or with incomplete
// changes.
func (p *plan) pointsToUndo(points []persistence.StoredPoint, root string) (map[protocol.PointID]bool, error) {
	undo := map[protocol.PointID]bool{}
	for i, point := range points {
		if i > 0 && isAbandoned(&point) {
			continue
		}
		if point.Root != root {
			point.Unrestorable = "it changed files in another directory, " + point.Root
		}
		if point.Unrestorable != "" && !p.anyway {
			return nil, &UnrestorableError{point.ID, point.Unrestorable}
		}
		undo[point.ID] = true
	}
	return undo, nil
}

// isAbandoned reports whether a point belongs to a rewind that was given up. Such a rewind undid
// nothing.
func isAbandoned(p *persistence.StoredPoint) bool {
	return p.Kind == protocol.PointRewind && p.To == ""
}

// add plans the undo of one path, whose current state is now. It returns the entry for the report,
// or nil if the path already is as it was before the points. The entry is valid until the next
// call.
func (p *plan) add(u filepoint.Undo, now *protocol.FileState) *protocol.FileRewind {
	f := protocol.FileRewind{Path: u.Path, Effect: filepoint.EffectOf(now, u.Before), Kind: kindOf(u.Before, now), Unkept: filepoint.Unkept(u.Before)}
	switch {
	case f.Unkept != "": // no copy: leave the file alone
	case filepoint.Equal(now, u.Before):
		return nil
	default:
		f.Conflict = conflict(u, now)
		p.steps = append(p.steps, filepoint.Step{Path: u.Path, Now: now, Want: u.Before})
	}
	p.files = append(p.files, f)
	return &p.files[len(p.files)-1]
}

// check returns a ConflictError if the plan would lose data, and a budget error if it has more than
// maxRewind steps.
func (p *plan) check() error {
	against := slices.DeleteFunc(slices.Clone(p.files), func(f protocol.FileRewind) bool { return f.Conflict == "" && f.Unkept == "" })
	switch {
	case len(p.steps) > maxRewind:
		return fmt.Errorf("the undo would change %d files, the limit is %d: %w", len(p.steps), maxRewind, persistence.ErrBudget)
	case len(against) > 0 && !p.anyway:
		return &ConflictError{against}
	}
	return nil
}

// undoing returns the rows of the changes that the steps make. They are stored under the point of
// the rewind, so that the rewind itself can be undone.
func (p *plan) undoing(id protocol.PointID, step int64) (changes []persistence.FileChange) {
	for _, s := range p.steps {
		body := persistence.FileChangeBody{Before: s.Now, After: s.Want}
		changes = append(changes, persistence.FileChange{Point: id, Step: step, Path: s.Path, FileChangeBody: body})
	}
	return changes
}

// kindOf returns the kind of the first state that is not nil.
func kindOf(states ...*protocol.FileState) protocol.FileKind {
	for _, s := range states {
		if s != nil {
			return s.Kind
		}
	}
	return ""
}

// conflict returns the reason why restoring a path would lose data, or "" if it would not.
func conflict(u filepoint.Undo, now *protocol.FileState) protocol.FileConflict {
	switch {
	case now != nil && now.Kind == protocol.FileDirectory:
		return "" // a directory that is not empty is kept anyway
	case now != nil && now.Problem != "":
		return protocol.ConflictNotKept
	case u.Broken, !filepoint.Equal(now, u.After):
		return protocol.ConflictChanged
	case u.Shared:
		return protocol.ConflictShared
	case u.Unsure:
		return protocol.ConflictUnsure
	}
	return ""
}
