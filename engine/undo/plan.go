package undo

import (
	"fmt"
	"slices"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxRewind is how many files one rewind changes at most: their rows are in one commit.
const maxRewind = 10_000

// plan decides what a rewind does to files. It reads and changes no files itself.
type plan struct {
	anyway bool // do what can be done, whatever is lost; or only say it
	files  []protocol.FileRewind
	steps  []filepoint.Step
}

// pointsToUndo are those of the points whose changes in the workspace root are undone. A point that cannot be undone whole is refused.
func (p *plan) pointsToUndo(points []persistence.StoredPoint, root string) (map[protocol.PointID]bool, error) {
	undo := map[protocol.PointID]bool{}
	for i, point := range points {
		if i > 0 && wasGivenUp(&point) {
			continue
		}
		if point.Root != root {
			point.Unrestorable = "it was about files in " + point.Root
		}
		if point.Unrestorable != "" && !p.anyway {
			return nil, &UnrestorableError{point.ID, point.Unrestorable}
		}
		undo[point.ID] = true
	}
	return undo, nil
}

// wasGivenUp tells whether a point is that of a rewind which was given up.
func wasGivenUp(p *persistence.StoredPoint) bool { return p.Kind == protocol.PointRewind && p.To == "" }

// add decides what is done to a path, which is in the state now. It returns nil if the path is as it was before the points, or what is
// told of it.
func (p *plan) add(u filepoint.Undo, now *protocol.FileState) *protocol.FileRewind {
	f := protocol.FileRewind{Path: u.Path, Effect: filepoint.EffectOf(now, u.Before), Kind: kindOf(u.Before, now), Unkept: filepoint.Unkept(u.Before)}
	switch {
	case f.Unkept != "": // it stays as it is
	case filepoint.Equal(now, u.Before):
		return nil
	default:
		f.Conflict = conflict(u, now)
		p.steps = append(p.steps, filepoint.Step{Path: u.Path, Now: now, Want: u.Before})
	}
	p.files = append(p.files, f)
	return &p.files[len(p.files)-1]
}

// check refuses a plan by which something would be lost, or which is too large.
func (p *plan) check() error {
	against := slices.DeleteFunc(slices.Clone(p.files), func(f protocol.FileRewind) bool { return f.Conflict == "" && f.Unkept == "" })
	switch {
	case len(p.steps) > maxRewind:
		return fmt.Errorf("%d files are to be brought back, at most %d: %w", len(p.steps), maxRewind, persistence.ErrBudget)
	case len(against) > 0 && !p.anyway:
		return &ConflictError{against}
	}
	return nil
}

// undoing are the changes that the steps make, so that the rewind can be undone.
func (p *plan) undoing(id protocol.PointID, step int64) (changes []persistence.FileChange) {
	for _, s := range p.steps {
		body := persistence.FileChangeBody{Before: s.Now, After: s.Want}
		changes = append(changes, persistence.FileChange{Point: id, Step: step, Path: s.Path, FileChangeBody: body})
	}
	return changes
}

func kindOf(states ...*protocol.FileState) protocol.FileKind {
	for _, s := range states {
		if s != nil {
			return s.Kind
		}
	}
	return ""
}

// conflict is why somebody may miss the present state of a path.
func conflict(u filepoint.Undo, now *protocol.FileState) protocol.FileConflict {
	switch {
	case now != nil && now.Kind == protocol.FileDirectory:
		return "" // a directory that is not empty stays
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
