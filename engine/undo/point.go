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

// Point is the file point of a turn: what its tools do to files. It looks at files before tools run and after they have, so that what a
// person does in between is not taken for theirs. It belongs to the goroutine of the turn, but for Announce. A look is made beside the turn,
// which waits only where it needs the result. The methods of a nil Point, which is nobody's, do nothing.
type Point struct {
	files *Files
	cwd   string
	row   int64 // of the session

	workspace *workspace // nil: no tool has run yet, or there is nothing to look at
	point     protocol.FilePoint
	kept      bool // the store has the point as it is
	begun     bool // the store has the point
	ready     bool // tools may run: what there is before is known

	looked chan error  // gets the result of the look that is being made; nil: there is none
	then   func(error) // handles that result

	mu        sync.Mutex
	announced map[string]*protocol.FileState // paths that looks leave out, and that tools are about to change, as they were
	missed    error                          // why that is not known of some path
}

// NewPoint makes the file point of a turn of a session, which the store knows by row and which works in the directory cwd. Nothing is looked at
// yet. The caller releases the point.
func (f *Files) NewPoint(session protocol.SessionID, row int64, turn protocol.TurnID, cwd string) *Point {
	return &Point{files: f, cwd: cwd, row: row, point: protocol.FilePoint{SessionID: session, Kind: protocol.PointTurn, State: protocol.PointOpen, TurnID: turn}}
}

// LookBefore begins to look at the files before tools run: what they are then is what undo brings back. ToolsStart waits for the look. An
// error does not fail the turn; the point says that it cannot be undone.
func (p *Point) LookBefore(ctx context.Context) {
	if p == nil || p.files.cfg.Limits.Off || !p.opened() && !p.open() {
		return
	}
	p.beside(func() error { return p.workspace.timedLook(ctx, true, p.workspace.attribute) }, func(err error) {
		p.ready = err == nil
		if ctx.Err() == nil { // else no tool runs
			p.failed(err)
		}
	})
}

// opened tells whether tools have run.
func (p *Point) opened() bool { return p != nil && p.workspace != nil }

// open begins to use the workspace, if it is there.
func (p *Point) open() bool {
	w, err := p.files.use(p.cwd)
	if err != nil {
		return false // no tool finds a directory there, either
	}
	p.workspace, p.announced = w, map[string]*protocol.FileState{}
	p.point.ID, p.point.AtMs = protocol.NewPointID(), time.Now().UnixMilli()
	return true
}

// beside makes a look beside the turn, once the previous one has ended.
func (p *Point) beside(look func() error, then func(error)) {
	p.Join(true)
	looked := make(chan error, 1)
	p.looked, p.then = looked, then
	go func() {
		defer func() {
			if v := recover(); v != nil {
				p.files.cfg.Log.Error("panic", "file point", p.point.ID, "panic", v, "stack", string(debug.Stack()))
				looked <- fmt.Errorf("panic: %v", v)
			}
		}()
		looked <- look()
	}()
}

// Join handles the result of the look that is made beside the turn, if it has ended. With wait it waits for that.
func (p *Point) Join(wait bool) {
	if !p.opened() || p.looked == nil || !wait && len(p.looked) == 0 {
		return
	}
	err := <-p.looked
	p.looked = nil
	p.then(err)
}

// ToolsStart says that tools start: changes are theirs from now on.
func (p *Point) ToolsStart() {
	if p.Join(true); p.opened() && p.ready {
		p.ready = false
		p.workspace.mark(p.point.ID, true)
	}
}

// ToolsEnd begins to look at what tools did, while the turn goes on. Its next tools wait for that, and so does its end.
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

// lookAfter looks at what tools did, unless another look has found that meanwhile.
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

// count updates the number of files of the point: another session may have found changes that both may have made.
func (p *Point) count(ctx context.Context) {
	count, err := p.files.cfg.Store.Files.CountPoint(ctx, p.point.ID)
	if err != nil {
		p.files.cfg.Log.Error("changes of files are not counted", "turn", p.point.TurnID, "error", err)
		return
	}
	if p.point.Files != count.Files || p.point.Unkept != count.Unkept {
		p.point.Files, p.point.Unkept, p.kept = count.Files, count.Unkept, false
	}
}

// failed notes the first error because of which the turn cannot be undone.
func (p *Point) failed(err error) {
	if err == nil || p.point.Unrestorable != "" {
		return
	}
	p.files.cfg.Log.Error("files cannot be brought back to before this turn", "session", p.point.SessionID, "turn", p.point.TurnID, "error", err)
	p.point.Unrestorable, p.kept = err.Error(), false
}

// Resume continues the point of a turn that was interrupted. Nobody has looked at what its tools did then: somebody else may have done it.
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

// Release ends the use of the workspace when the turn has ended, or is left.
func (p *Point) Release() {
	if p.opened() {
		p.Join(true)
		p.workspace.unmark(p.point.ID)
		p.workspace.release()
	}
}

// AddTo adds to a change of the session what is new of the point.
func (p *Point) AddTo(c *change.Change) {
	if !p.opened() || p.kept {
		return
	}
	c.Files = persistence.FileCommit{Workspace: p.workspace.root, Points: []persistence.StoredPoint{{FilePoint: p.point}}}
	if p.point.Files > 0 || p.point.Unrestorable != "" {
		c.Tell(Event(p.point))
	}
	c.Then(func() { p.kept, p.begun = true, true })
}

// Close adds the end of the point to the turn's last change. A point without changes is removed.
func (p *Point) Close(c *change.Change) {
	switch {
	case !p.opened():
	case p.point.Files > 0 || p.point.Unrestorable != "":
		p.point.State, p.kept = protocol.PointClosed, false
		p.AddTo(c)
	case p.begun:
		c.Files = persistence.FileCommit{Workspace: p.workspace.root, Forget: []protocol.PointID{p.point.ID}}
	}
}

// Event tells observers of a file point.
func Event(p protocol.FilePoint) change.Event {
	return change.Event{Event: protocol.Event{Type: protocol.EventFilePoint, TurnID: p.TurnID, Point: &p}}
}

// Announce copies a path that a tool is about to change, if looks leave it out. If that fails, the point cannot be undone. Any goroutine may
// call it while tools run.
func (p *Point) Announce(ctx context.Context, path string) {
	if !p.opened() {
		return
	}
	was, err := p.workspace.leftOut(ctx, path)
	if ctx.Err() != nil || errors.Is(err, fs.ErrPermission) {
		return // the tool changes nothing
	}
	p.miss(path, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.announced[path]; was != nil && err == nil && !twice {
		p.announced[path] = was.state
	}
}

// miss notes that the state of a path is not known.
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

// announcedDeltas are the changes that were announced and that a look did not find. It is called during that look.
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
