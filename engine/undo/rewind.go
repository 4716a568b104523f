package undo

import (
	"context"
	"slices"

	"lashd/engine/filepoint"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Session is the session whose files are rewound. It is held until the rewind has ended, so that no turn of it starts.
type Session interface {
	// Row is the number that the store knows the session by.
	Row() int64
	// Cwd is the directory that it works in.
	Cwd() string
	// Target returns the node to which a rewind takes history, and what the rewind comes to without its files. A rewind of files only has
	// no node.
	Target(context.Context, *protocol.SessionRewindParams) (protocol.NodeID, *protocol.SessionRewindResult, error)
	// TurnsAfter returns the turns of the active path that come after a node.
	TurnsAfter(context.Context, protocol.NodeID) (map[protocol.TurnID]bool, error)
	// Begin stores rows of files.
	Begin(context.Context, persistence.FileCommit) error
	// Tell tells observers of an issue.
	Tell(context.Context, protocol.Issue) error
	// Finish stores what became of a rewind, with its history. If files were changed, want of space only delays that.
	Finish(context.Context, Outcome) error
}

// Outcome is what became of a rewind.
type Outcome struct {
	Point   *persistence.StoredPoint      // of the files, closed; nil: none was to be changed
	GivenUp bool                          // changes of the point are removed, and there is no result
	To      protocol.NodeID               // history moves there; empty: it stays
	Result  *protocol.SessionRewindResult // Finish fills in what it does to history
	Request receipt.Request               // that asked for it
}

// rewind is a rewind of files. It locks their workspace.
type rewind struct {
	files   *Files
	session Session
	p       *protocol.SessionRewindParams
	request receipt.Request

	to     protocol.NodeID // history moves there; empty: it stays
	result *protocol.SessionRewindResult

	workspace *workspace
	dir       *filepoint.Workspace
	base      protocol.PointID // files become what they were before it
	plan      plan
}

// Rewind brings back files, with history or without. What it is about to do is durable before the first file changes: a rewind that is cut
// off is finished when lashd starts again.
func (f *Files) Rewind(ctx context.Context, s Session, p *protocol.SessionRewindParams, asked receipt.Request) (*protocol.SessionRewindResult, error) {
	r := &rewind{files: f, session: s, p: p, request: asked, plan: plan{anyway: p.Force || p.DryRun}}
	var err error
	if r.to, r.result, err = s.Target(ctx, p); err != nil {
		return nil, err
	}
	points, err := r.points(ctx)
	if err != nil {
		return nil, err
	}
	if len(points) > 0 { // else files are not even looked at
		if err := r.open(ctx, s.Cwd()); err != nil {
			return nil, err
		}
		defer r.close()
		if _, err := r.workspace.look(ctx, true, r.workspace.attribute); err != nil {
			return nil, &UnrestorableError{Reason: err.Error()}
		}
		if err := r.makePlan(ctx, points); err != nil {
			return nil, err
		}
	}
	if p.DryRun {
		return r.result, nil
	}
	return r.result, r.perform(ctx)
}

// open locks the workspace, unless tools work in it. What is there now, only a look tells.
func (r *rewind) open(ctx context.Context, cwd string) error {
	w, err := r.files.use(cwd)
	if err != nil {
		return param.Bad("/sessionId", "the workspace of the session is not there: %v", err)
	}
	if err := w.lock(ctx); err != nil {
		w.release()
		return err
	}
	r.workspace = w
	if w.inUse() {
		err = ErrInUse
	} else {
		r.dir, err = w.openDir()
	}
	if err != nil {
		r.close()
	}
	return err
}

func (r *rewind) close() {
	if r.dir != nil {
		r.dir.Close() // nothing is written through it
		r.dir = nil
	}
	r.workspace.unlock()
	r.workspace.release()
}

// points are those that the rewind undoes: of the session and of its subagents, from the first one that is left behind.
func (r *rewind) points(ctx context.Context) ([]persistence.StoredPoint, error) {
	store, row := r.files.cfg.Store, r.session.Row()
	own, err := store.Files.Points(ctx, row)
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
		if err = r.files.knownTurn(ctx, r.p.SessionID, r.p.ToTurn); err == nil {
			first, err = store.Files.FirstPointSince(ctx, row, r.p.ToTurn)
		}
	default:
		first, err = r.firstAfter(ctx, own)
	}
	if err != nil || first == 0 {
		return nil, err
	}
	return store.Files.PointsBelow(ctx, row, first)
}

// firstAfter is the first point of a turn whose nodes come after the node that the rewind goes to.
func (r *rewind) firstAfter(ctx context.Context, own []persistence.StoredPoint) (int64, error) {
	after, err := r.session.TurnsAfter(ctx, r.p.ToNode)
	if err != nil {
		return 0, err
	}
	for _, p := range own {
		if p.TurnID != "" && after[p.TurnID] {
			return p.Row, nil
		}
	}
	return 0, nil
}

// makePlan plans what is done to files, and refuses that if something would be lost.
func (r *rewind) makePlan(ctx context.Context, points []persistence.StoredPoint) error {
	r.base = points[0].ID
	undo, err := r.plan.pointsToUndo(points, r.workspace.root)
	if err != nil {
		return err
	}
	changes, err := r.changesHere(ctx, points)
	if err != nil {
		return err
	}
	for _, u := range filepoint.Undone(changes, undo) {
		now, err := r.workspace.current(ctx, r.dir, u.Path, true)
		if err != nil {
			return err
		}
		if err := r.countLines(ctx, r.plan.add(u, now), now, u.Before); err != nil {
			return err
		}
	}
	r.result.Files = r.plan.files
	return r.plan.check()
}

// changesHere are the changes in the workspace of the session: those that are undone, and those after them.
func (r *rewind) changesHere(ctx context.Context, points []persistence.StoredPoint) ([]persistence.FileChange, error) {
	i := slices.IndexFunc(points, func(p persistence.StoredPoint) bool { return p.Root == r.workspace.root })
	if i < 0 {
		return nil, nil
	}
	return r.files.cfg.Store.Files.Changes(ctx, points[i].Workspace, points[i].Row)
}

// countLines counts the lines that a file gains and loses, if its state is changed.
func (r *rewind) countLines(ctx context.Context, f *protocol.FileRewind, from, to *protocol.FileState) error {
	if f == nil || f.Unkept != "" {
		return nil
	}
	d, err := r.files.diff(ctx, f.Path, from, to)
	f.Added, f.Removed, f.Binary = d.Added, d.Removed, d.Binary
	return err
}
