package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxRewind is how many files one rewind brings back at most: they stand in one commit.
const maxRewind = 10_000

// rewinding is a rewind of files. It holds its session, so that no turn starts, and the workspace.
type rewinding struct {
	*workspace
	held *writer
	dir  *filepoint.Workspace
	p    *protocol.SessionRewindParams
	rc   receipt

	to     *target // of history; nil: it stays
	result *protocol.SessionRewindResult
	base   persistence.StoredPoint // files become what they were before it
	steps  []filepoint.Step
}

// rewindFiles brings back files, with history or without. What it is about to do is durable before the first file changes: a
// rewind that is cut off is brought to its end when lashd starts again.
func (e *Engine) rewindFiles(ctx context.Context, p *protocol.SessionRewindParams) (*protocol.SessionRewindResult, error) {
	return single(ctx, e, "session/rewind", p.Key(), p, func(rc receipt) (*protocol.SessionRewindResult, error) {
		held, err := e.holdIdle(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		defer held.leave()
		if first, hit, err := replayed[protocol.SessionRewindResult](ctx, e, rc); hit || err != nil {
			return first, err // an interrupted rewind was brought to its end just now
		}
		r := &rewinding{held: held, p: p, rc: rc}
		return r.run(ctx)
	})
}

// holdIdle holds a session, unless something runs in it.
func (e *Engine) holdIdle(ctx context.Context, id protocol.SessionID) (*writer, error) {
	w, err := do(context.WithoutCancel(ctx), e, id, func(_ context.Context, st *state) (*writer, error) {
		if len(st.turns) > 0 {
			return nil, &TurnActiveError{TurnID: st.turns[0].ID}
		}
		w := st.enlist(ctx)
		st.kick()
		return w, nil
	})
	if err != nil {
		return nil, err
	}
	return w, w.taken()
}

func (r *rewinding) run(ctx context.Context) (*protocol.SessionRewindResult, error) {
	err := r.on(ctx, func(ctx context.Context, st *state) (err error) {
		if r.p.Files == protocol.RewindOnly {
			r.result = &protocol.SessionRewindResult{Head: st.row.Head, Seq: st.row.Seq}
			return nil
		}
		to, result, err := st.leafFor(ctx, r.p)
		r.to, r.result = &to, result
		return err
	})
	if err != nil {
		return nil, err
	}
	points, err := r.points(ctx)
	if err != nil {
		return nil, err
	}
	if len(points) > 0 { // else files are not even looked at
		if err := r.enter(ctx, r.held.lease.about.Cwd); err != nil {
			return nil, err
		}
		defer r.leave()
		if _, err := r.look(ctx, true, r.attribute); err != nil {
			return nil, &UnrestorableError{Reason: err.Error()}
		}
		if err := r.plan(ctx, points); err != nil {
			return nil, err
		}
	}
	if r.p.DryRun {
		return r.result, nil
	}
	return r.perform(ctx)
}

// on runs something on the actor, if the session is still held.
func (r *rewinding) on(ctx context.Context, f func(context.Context, *state) error) error {
	w := r.held
	_, err := do(context.WithoutCancel(ctx), w.owner.eng, w.owner.session.id, func(ctx context.Context, st *state) (struct{}, error) {
		if st != w.owner {
			return struct{}{}, ErrReloaded
		}
		return struct{}{}, f(ctx, st)
	})
	return err
}

// enter takes the workspace, and leave gives it back. What is there now, a look tells.
func (r *rewinding) enter(ctx context.Context, cwd string) (err error) {
	if r.workspace, err = r.held.owner.eng.use(cwd); err != nil {
		return bad("/sessionId", "the workspace of the session is not there: %v", err)
	}
	if err := r.take(ctx); err != nil {
		r.forgo()
		return err
	}
	if r.inUse() {
		err = ErrFilesInUse
	} else {
		r.dir, err = filepoint.Open(r.root, r.eng.StateDir)
	}
	if err != nil {
		r.leave()
	}
	return err
}

// inUse tells whether tools of some turn are at work.
func (w *workspace) inUse() bool {
	w.eng.files.mu.Lock()
	defer w.eng.files.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(w.busy)), true)
}

func (r *rewinding) leave() {
	if r.dir != nil {
		r.dir.Close() // nothing is written through it
		r.dir = nil
	}
	r.giveBack()
	r.forgo()
}

// plan finds what is to be done to files, and refuses it if something would be lost.
func (r *rewinding) plan(ctx context.Context, points []persistence.StoredPoint) error {
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
func (r *rewinding) changesHere(ctx context.Context, points []persistence.StoredPoint) ([]persistence.FileChange, error) {
	i := slices.IndexFunc(points, func(p persistence.StoredPoint) bool { return p.Root == r.root })
	if i < 0 {
		return nil, nil
	}
	return r.eng.store.FileChanges(ctx, points[i].Workspace, points[i].Row)
}

// points are those that the rewind undoes: of the session and of what works for it, from the first one that is left behind.
func (r *rewinding) points(ctx context.Context) ([]persistence.StoredPoint, error) {
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
func (r *rewinding) firstAfter(ctx context.Context, own []persistence.StoredPoint) (first int64, err error) {
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
func (r *rewinding) planFile(ctx context.Context, u filepoint.Undo) error {
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
func (r *rewinding) count(ctx context.Context, f *protocol.FileRewind, from, to *protocol.FileState) error {
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
