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

// Session is the part of the engine's session that a rewind needs. The engine holds the session
// until the rewind has ended, so no turn starts while files change.
type Session interface {
	// Row is the store's number of the session.
	Row() int64
	// Cwd is the directory in which the session works.
	Cwd() string
	// Target returns the node to which history moves, and the result without its files. The node is
	// empty for a rewind of files only.
	Target(context.Context, *protocol.SessionRewindParams) (protocol.NodeID, *protocol.SessionRewindResult, error)
	// TurnsAfter returns the turns on the active path after a node.
	TurnsAfter(context.Context, protocol.NodeID) (map[protocol.TurnID]bool, error)
	// Begin commits the rows of a rewind, including its journal. An error means that nothing is
	// stored.
	Begin(context.Context, persistence.FileCommit) error
	// Tell notifies clients of an issue.
	Tell(context.Context, protocol.Issue) error
	// Finish commits the outcome of a rewind together with the change of history. If files have
	// changed, it waits for disk space instead of failing.
	Finish(context.Context, Outcome) error
}

// Outcome is the result of a rewind, for Session.Finish.
type Outcome struct {
	// Point is the closed file point of the rewind, or nil if no file was to be changed.
	Point *persistence.StoredPoint
	// GivenUp means that the rewind was abandoned: Finish removes the changes of the point, and
	// there is no result.
	GivenUp bool
	// To is the node to which history moves. Empty: history stays.
	To protocol.NodeID
	// Result is the answer for the client. Finish adds the effect on history.
	Result *protocol.SessionRewindResult
	// Request is the request that asked for the rewind; its answer is stored for retries.
	Request receipt.Request
}

// rewind is one rewind in progress. From open to close it holds the lock of the workspace. It
// belongs to one goroutine.
type rewind struct {
	files   *Files
	session Session
	p       *protocol.SessionRewindParams
	request receipt.Request

	// to is the node to which history moves. Empty: history stays.
	to     protocol.NodeID
	result *protocol.SessionRewindResult

	workspace *workspace
	dir       *filepoint.Workspace
	// base is the oldest point that is undone. Files become what they were before it.
	base protocol.PointID
	plan plan
}

// Rewind restores the files of a session to an earlier point, with or without its history. The
// planned work is durable before the first file changes; Resume completes it after a crash. Without
// Force, Rewind changes nothing and returns a ConflictError or an UnrestorableError if anything
// would be lost. It returns ErrInUse while tools run in the workspace.
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
	if len(points) > 0 { // without points no file changes, so no scan is needed
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

// open locks the workspace and opens its directory, unless tools run there. The caller scans the
// workspace next, because files may have changed since the last scan.
func (r *rewind) open(ctx context.Context, cwd string) error {
	w, err := r.files.use(cwd)
	if err != nil {
		return param.Bad("/sessionId", "names a session whose workspace cannot be opened: %v", err)
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

// close releases the workspace. It is called once after each successful open.
func (r *rewind) close() {
	if r.dir != nil {
		r.dir.Close() // read-only handle: the error has no consequence
		r.dir = nil
	}
	r.workspace.unlock()
	r.workspace.release()
}

// points returns the points to undo, oldest first: those of the session and of its subagents from
// the selected point, turn, or node on.
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

// firstAfter returns the row of the oldest point whose turn comes after the node to which history
// moves, or 0.
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

// makePlan fills in the plan and the files of the result. It returns the error of plan.check if the
// plan would lose data.
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

// changesHere returns all changes in the workspace of the session since the oldest point to undo,
// including those made by other sessions.
func (r *rewind) changesHere(ctx context.Context, points []persistence.StoredPoint) ([]persistence.FileChange, error) {
	i := slices.IndexFunc(points, func(p persistence.StoredPoint) bool { return p.Root == r.workspace.root })
	if i < 0 {
		return nil, nil
	}
	return r.files.cfg.Store.Files.Changes(ctx, points[i].Workspace, points[i].Row)
}

// countLines sets the added and removed lines of a file in the report. f may be nil.
func (r *rewind) countLines(ctx context.Context, f *protocol.FileRewind, from, to *protocol.FileState) error {
	if f == nil || f.Unkept != "" {
		return nil
	}
	d, err := r.files.diff(ctx, f.Path, from, to)
	f.Added, f.Removed, f.Binary = d.Added, d.Removed, d.Binary
	return err
}
