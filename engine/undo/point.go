package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"sync"
	"time"

	"lashd/engine/change"
	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Point is the file point of a running turn: it records the changes that the turn's tools make to
// files.
//
// It scans the workspace before tools run and again after they end, so that edits a person makes
// between two batches of tools are not attributed to the turn. A turn calls LookBefore, ToolsStart,
// ToolsEnd for each batch, and Close or Release at the end. Scans run in their own goroutine; the
// turn waits for one only where it needs the result.
//
// All methods except Announce must be called from the goroutine of the turn. Methods of a nil Point
// do nothing.
type Point struct {
	files *Files
	cwd   string
	// row is the store's number of the session.
	row int64

	// workspace is nil until the first tool runs, and if the directory does not exist.
	workspace *workspace
	point     protocol.FilePoint
	// kept means that the store has the point in its present form, begun that it has some form of
	// it.
	kept  bool
	begun bool
	// ready means that the scan before the tools has succeeded, so tools may run.
	ready bool

	// looked receives the result of the scan in progress. It is nil if none is running.
	looked chan error
	// then handles the result of that scan, on the goroutine of the turn.
	then func(error)

	mu sync.Mutex
	// announced maps paths that scans skip, and that tools are about to change, to their
	// earlier states.
	announced map[string]*protocol.FileState
	// missed is the error of the last path whose earlier state could not be read.
	missed error
}

// NewPoint returns the file point of a turn. row is the store's number of the session, cwd the
// directory in which it works. NewPoint reads no files. The caller calls Release when the turn
// ends.
func (f *Files) NewPoint(session protocol.SessionID, row int64, turn protocol.TurnID, cwd string) *Point {
	return &Point{files: f, cwd: cwd, row: row, point: protocol.FilePoint{SessionID: session, Kind: protocol.PointTurn, State: protocol.PointOpen, TurnID: turn}}
}

// LookBefore starts the scan that records the files before tools run, the state that undo restores.
// ToolsStart waits for the scan. An error does not fail the turn; it makes the point unrestorable.
func (p *Point) LookBefore(ctx context.Context) {
	if p == nil || p.files.cfg.Limits.Off || !p.opened() && !p.open() {
		return
	}
	p.beside(func() error { return p.workspace.timedLook(ctx, true, p.workspace.attribute) }, func(err error) {
		p.ready = err == nil
		if ctx.Err() == nil { // a cancelled turn runs no tool
			p.failed(err)
		}
	})
}

// opened reports whether the point uses a workspace, which it does from the first tool call on.
func (p *Point) opened() bool { return p != nil && p.workspace != nil }

// open starts using the workspace. It returns false if the directory does not exist.
func (p *Point) open() bool {
	w, err := p.files.use(p.cwd)
	if err != nil {
		return false // tools cannot use the directory either
	}
	p.workspace, p.announced = w, map[string]*protocol.FileState{}
	p.point.ID, p.point.AtMs = protocol.NewPointID(), time.Now().UnixMilli()
	return true
}

// beside waits for the previous scan and then starts the next one in its own goroutine. A panic in
// the scan becomes its error.
func (p *Point) beside(look func() error, then func(error)) {
	p.Join(true)
	looked := make(chan error, 1)
	p.looked, p.then = looked, then
	go func() {
		defer func() {
			if v := recover(); v != nil {
				p.files.cfg.Log.Error("file scan panicked", "file point", p.point.ID, "panic", v, "stack", string(debug.Stack()))
				looked <- fmt.Errorf("panic: %v", v)
			}
		}()
		looked <- look()
	}()
}

// Join handles the result of a finished scan. With wait set it first waits for a running scan to
// finish.
func (p *Point) Join(wait bool) {
	if !p.opened() || p.looked == nil || !wait && len(p.looked) == 0 {
		return
	}
	err := <-p.looked
	p.looked = nil
	p.then(err)
}

// ToolsStart waits for the scan before the tools. Changes belong to the turn from now until
// ToolsEnd.
func (p *Point) ToolsStart() {
	if p.Join(true); p.opened() && p.ready {
		p.ready = false
		p.workspace.mark(p.point.ID, true)
	}
}

// ToolsEnd starts the scan for changes that the tools made. The turn continues; its next tools and
// its end wait for this scan. The scan ignores cancellation of ctx, because the tools have already
// run.
func (p *Point) ToolsEnd(ctx context.Context) {
	if !p.opened() {
		return
	}
	p.Join(true)
	if running, _ := p.workspace.marked(p.point.ID); !running {
		return
	}
	p.workspace.mark(p.point.ID, false)
	ctx = context.WithoutCancel(ctx)
	p.beside(func() error { return p.lookAfter(ctx) }, func(err error) {
		p.workspace.unmark(p.point.ID)
		p.failed(err)
		p.count(ctx)
	})
}

// lookAfter scans for the changes of the tools, unless the scan of another turn has already found
// them. It runs on the goroutine that beside starts.
func (p *Point) lookAfter(ctx context.Context) (err error) {
	if _, open := p.workspace.marked(p.point.ID); open || p.hasAnnounced() {
		err = p.workspace.timedLook(ctx, false, func(deltas []delta) []persistence.FileChange {
			return p.workspace.attribute(append(deltas, p.announcedDeltas(ctx, deltas)...))
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(err, p.missed)
}

// count reads the number of changed files from the store. The scan of another session may have
// added changes to this point.
func (p *Point) count(ctx context.Context) {
	count, err := p.files.cfg.Store.Files.CountPoint(ctx, p.point.ID)
	if err != nil {
		p.files.cfg.Log.Error("cannot count changed files", "turn", p.point.TurnID, "error", err)
		return
	}
	if known := (persistence.ChangeCount{Files: p.point.Files, Directories: p.point.Directories, Unkept: p.point.Unkept}); known != count {
		p.point.Files, p.point.Directories, p.point.Unkept, p.kept = count.Files, count.Directories, count.Unkept, false
	}
}

// failed makes the point unrestorable. Only the first error is kept and logged.
func (p *Point) failed(err error) {
	if err == nil || p.point.Unrestorable != "" {
		return
	}
	p.files.cfg.Log.Error("cannot record file changes; this turn cannot be undone", "session", p.point.SessionID, "turn", p.point.TurnID, "error", err)
	p.point.Unrestorable, p.kept = err.Error(), false
}

// Resume continues the point of a turn that a crash interrupted. It attributes all changes since
// the last scan to the turn, marked as unsure, because other programs may have made them.
func (p *Point) Resume(ctx context.Context) {
	if p == nil || p.files.cfg.Limits.Off {
		return
	}
	stored, err := p.files.cfg.Store.Files.PointOfTurn(ctx, p.row, p.point.TurnID)
	if errors.Is(err, persistence.ErrNotFound) || !p.open() {
		return
	}
	p.begun = true
	if err == nil {
		p.point, p.kept = stored.FilePoint, true
		err = p.workspace.timedLook(ctx, false, func(deltas []delta) []persistence.FileChange {
			return p.workspace.changes(deltas, []protocol.PointID{p.point.ID}, true)
		})
	}
	p.failed(err)
	p.count(ctx)
}

// Release waits for a running scan and stops using the workspace. A turn calls it once, at its end
// or when the session is unloaded.
func (p *Point) Release() {
	if p.opened() {
		p.Join(true)
		p.workspace.unmark(p.point.ID)
		p.workspace.release()
	}
}

// AddTo adds the point to a commit of the session if the store does not have its latest form.
func (p *Point) AddTo(c *change.Change) {
	if !p.opened() || p.kept {
		return
	}
	c.Files = persistence.FileCommit{Workspace: p.workspace.root, Points: []persistence.StoredPoint{{FilePoint: p.point}}}
	if p.point.Changed() || p.point.Unrestorable != "" {
		c.Tell(Event(p.point))
	}
	c.Then(func() { p.kept, p.begun = true, true })
}

// Close adds the closed point to the last commit of the turn. A point without changes is deleted.
func (p *Point) Close(c *change.Change) {
	switch {
	case !p.opened():
	case p.point.Changed() || p.point.Unrestorable != "":
		p.point.State, p.kept = protocol.PointClosed, false
		p.AddTo(c)
	case p.begun:
		c.Files = persistence.FileCommit{Workspace: p.workspace.root, Forget: []protocol.PointID{p.point.ID}}
	}
}

// Event returns the event that notifies clients of a file point.
func Event(p protocol.FilePoint) change.Event {
	return change.Event{Event: protocol.Event{Type: protocol.EventFilePoint, TurnID: p.TurnID, Point: &p}}
}

// Announce copies a file that a tool is about to change, if scans skip its path. If the copy fails,
// the point becomes unrestorable. Any goroutine may call it while tools run.
func (p *Point) Announce(ctx context.Context, path string) {
	if !p.opened() {
		return
	}
	was, err := p.workspace.leftOut(ctx, path)
	if ctx.Err() != nil || errors.Is(err, fs.ErrPermission) {
		return // the tool cannot change the file either
	}
	p.miss(path, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.announced[path]; was != nil && err == nil && !twice {
		p.announced[path] = was.state
	}
}

// miss stores the error of a path whose state could not be read. A nil error changes nothing.
func (p *Point) miss(path string, err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed = fmt.Errorf("%s: %w", path, err)
}

func (p *Point) hasAnnounced() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.announced) > 0
}

// announcedDeltas returns the changes of announced paths that a scan did not find itself. It runs
// during that scan, with the workspace locked.
func (p *Point) announcedDeltas(ctx context.Context, found []delta) (deltas []delta) {
	p.mu.Lock()
	announced := p.announced
	p.announced = map[string]*protocol.FileState{}
	p.mu.Unlock()
	for _, d := range found {
		delete(announced, d.path)
	}
	if len(announced) == 0 {
		return nil
	}
	dir, err := p.workspace.openDir()
	if err != nil {
		p.miss(p.workspace.root, err)
		return nil
	}
	defer dir.Close()
	for path, before := range announced {
		after, err := p.workspace.current(ctx, dir, path, true)
		p.miss(path, err)
		if err == nil && !filepoint.Equal(before, after) {
			deltas = append(deltas, delta{path, before, after})
		}
	}
	return deltas
}
