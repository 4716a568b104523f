package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// plan finds what is to be done to files, and refuses it if something would be lost.
func (r *fileRewind) plan(ctx context.Context, points []persistence.StoredPoint) error {
	r.base = points[0]
	undo := map[protocol.PointID]bool{}
	for i, p := range points {
		if i > 0 && leftUndone(&p) {
			continue
		}
		if p.Root != r.root {
			p.Unrestorable = "it was about files in " + p.Root
		}
		if p.Unrestorable != "" && !r.p.Force && !r.p.DryRun {
			return &UnrestorableError{p.ID, p.Unrestorable}
		}
		undo[p.ID] = true
	}
	changes, err := r.changesHere(ctx, points)
	if err != nil {
		return err
	}
	for _, u := range filepoint.Undone(changes, undo) {
		if err := r.planFile(ctx, u); err != nil {
			return err
		}
	}
	against := slices.DeleteFunc(slices.Clone(r.result.Files), func(f protocol.FileRewind) bool { return f.Conflict == "" && f.Unkept == "" })
	switch {
	case len(r.steps) > maxRewind:
		return fmt.Errorf("%d files are to be brought back, at most %d: %w", len(r.steps), maxRewind, persistence.ErrBudget)
	case len(against) > 0 && !r.p.Force && !r.p.DryRun:
		return &RewindConflictError{against}
	}
	return nil
}

// changesHere are the changes in the workspace of the session: those that are to be undone, and those after them.
func (r *fileRewind) changesHere(ctx context.Context, points []persistence.StoredPoint) ([]persistence.FileChange, error) {
	i := slices.IndexFunc(points, func(p persistence.StoredPoint) bool { return p.Root == r.root })
	if i < 0 {
		return nil, nil
	}
	return r.eng.store.FileChanges(ctx, points[i].Workspace, points[i].Row)
}

// points are those that the rewind undoes: of the session and of what works for it, from the first one that is left behind.
func (r *fileRewind) points(ctx context.Context) ([]persistence.StoredPoint, error) {
	store, key := r.held.owner.eng.store, r.held.owner.session.key
	own, err := store.FilePoints(ctx, key)
	if err != nil {
		return nil, err
	}
	var first int64
	switch {
	case r.p.ToPoint != "":
		i := slices.IndexFunc(own, func(p persistence.StoredPoint) bool { return p.ID == r.p.ToPoint })
		if i < 0 {
			return nil, &persistence.NotFoundError{What: "file point", ID: string(r.p.ToPoint)}
		}
		first = own[i].Row
	case r.p.ToTurn != "":
		turn, failed := store.Turn(ctx, r.p.ToTurn)
		if failed == nil && turn.Session != r.p.SessionID {
			failed = &persistence.NotFoundError{What: "turn", ID: string(r.p.ToTurn)}
		}
		if err = failed; err == nil {
			first, err = store.FirstPointSince(ctx, key, r.p.ToTurn)
		}
	default:
		first, err = r.firstAfter(ctx, own)
	}
	if err != nil || first == 0 {
		return nil, err
	}
	return store.FilePointsBelow(ctx, key, first)
}

// firstAfter is the first point of a turn whose nodes come after the node that the rewind goes to.
func (r *fileRewind) firstAfter(ctx context.Context, own []persistence.StoredPoint) (first int64, err error) {
	behind := map[protocol.TurnID]bool{}
	err = r.on(ctx, func(ctx context.Context, st *state) error {
		for n, err := range st.back(ctx) {
			if err != nil || n.ID == r.p.ToNode {
				return err
			}
			behind[n.TurnID] = true
		}
		return &persistence.NotFoundError{What: "node", ID: string(r.p.ToNode)}
	})
	for _, p := range own {
		if behind[p.TurnID] && p.TurnID != "" {
			return p.Row, err
		}
	}
	return 0, err
}

// planFile finds what is to be done to one file.
func (r *fileRewind) planFile(ctx context.Context, u filepoint.Undo) error {
	present, err := r.present(ctx, r.dir, u.Path, true)
	if err != nil {
		return err
	}
	f := protocol.FileRewind{Path: u.Path, Effect: filepoint.EffectOf(present, u.Before), Kind: kindOf(u.Before, present), Unkept: filepoint.Unkept(u.Before)}
	switch {
	case filepoint.Equal(present, u.Before) && f.Unkept == "":
		return nil // it is that already
	case f.Unkept == "":
		f.Conflict = conflict(u, present)
		r.steps = append(r.steps, filepoint.Step{Path: u.Path, Now: present, Want: u.Before})
		if err := r.count(ctx, &f, present, u.Before); err != nil {
			return err
		}
	}
	r.result.Files = append(r.result.Files, f)
	return nil
}

func kindOf(states ...*protocol.FileState) protocol.FileKind {
	for _, s := range states {
		if s != nil {
			return s.Kind
		}
	}
	return ""
}

// conflict is why somebody may miss what there is now.
func conflict(u filepoint.Undo, present *protocol.FileState) protocol.FileConflict {
	switch {
	case present != nil && present.Kind == protocol.FileDirectory:
		return "" // a directory that is not empty stays
	case present != nil && present.Problem != "":
		return protocol.ConflictNotKept
	case u.Broken, !filepoint.Equal(present, u.After):
		return protocol.ConflictChanged
	case u.Shared:
		return protocol.ConflictShared
	case u.Unsure:
		return protocol.ConflictUnsure
	}
	return ""
}

// count counts the lines that a file gains and loses.
func (r *fileRewind) count(ctx context.Context, f *protocol.FileRewind, from, to *protocol.FileState) error {
	d, err := r.eng.compare(ctx, f.Path, from, to)
	f.Added, f.Removed, f.Binary = d.Added, d.Removed, d.Binary
	return err
}

// compare makes the diff of two states of a file, as far as there are copies.
func (e *Engine) compare(ctx context.Context, path string, from, to *protocol.FileState) (filepoint.Diff, error) {
	for _, s := range []*protocol.FileState{from, to} {
		if s != nil && (s.Kind != protocol.FileRegular || s.Digest == "") {
			return filepoint.Diff{}, nil
		}
	}
	before, err := e.contentOf(ctx, from)
	after, failed := e.contentOf(ctx, to)
	if err = errors.Join(err, failed); err != nil {
		return filepoint.Diff{}, err
	}
	return filepoint.Compare(path, before, after, from != nil, to != nil), nil
}
