package engine

import (
	"context"
	"errors"
	"sync"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// turnFiles is the file point of a turn: what its tools do to files. Files are looked at before tools go to work and after it, so
// that what a person does in between is not taken for theirs. It belongs to the goroutine of the turn; a look is made beside it, and
// who needs what it comes to waits for it.
type turnFiles struct {
	*workspace
	point protocol.FilePoint
	kept  bool // the store has the point as it is
	begun bool // the store has the point
	ready bool // tools may go to work: what there is before is known

	looked chan error  // gets what the look came to that is made now; nil: there is none
	then   func(error) // what is done with that

	mu     sync.Mutex
	said   map[string]*protocol.FileState // what tools are about to change that looks leave out, as it was before
	unsaid error                          // why that is not known of something
}

// changesFiles tells whether calls that are about to run may change files.
func changesFiles(stages []*stage) bool {
	for _, s := range stages {
		if s.reply != nil || s.entry == nil {
			continue
		}
		switch s.entry.Manifest.Kind {
		case protocol.ToolKindRead, protocol.ToolKindSearch, protocol.ToolKindThink, protocol.ToolKindFetch:
		default:
			return true
		}
	}
	return false
}

// beforeFiles has the files looked at before tools go to work: what they are then is what undo brings back. What fails here does not
// fail the turn, it is told.
func (r *run) beforeFiles(ctx context.Context, stages []*stage) error {
	if r.owner != nil && changesFiles(stages) {
		r.lookBefore(ctx)
	}
	return nil
}

// lookBefore begins the look; atWork waits for it.
func (r *run) lookBefore(ctx context.Context) {
	if r.eng.Files.Off || r.files == nil && !r.openFiles() {
		return
	}
	f := r.files
	f.beside(func() error { return f.lookFor(ctx, true, f.attribute) }, func(err error) {
		f.ready = err == nil
		if ctx.Err() == nil { // else no tool goes to work
			r.filesFailed(err)
		}
	})
}

// beside makes a look beside the turn, once the one before it is over.
func (f *turnFiles) beside(look func() error, then func(error)) {
	f.joinLook(true)
	looked := make(chan error, 1)
	f.looked, f.then = looked, then
	go func() {
		defer func() {
			if p := recover(); p != nil {
				looked <- f.eng.panicked("file point", f.point.ID, p)
			}
		}()
		looked <- look()
	}()
}

// joinLook does what follows from the look that was made beside the turn, if it is over, or waits for that.
func (f *turnFiles) joinLook(wait bool) {
	if f == nil || f.looked == nil || !wait && len(f.looked) == 0 {
		return
	}
	err := <-f.looked
	f.looked = nil
	f.then(err)
}

// openFiles makes the turn's file point, unless there is nothing to look at.
func (r *run) openFiles() bool {
	w, err := r.eng.use(r.cwd)
	if err != nil {
		return false // no tool finds a directory there, either
	}
	r.files = &turnFiles{workspace: w, said: map[string]*protocol.FileState{}, point: protocol.FilePoint{
		ID: protocol.NewPointID(), SessionID: r.session.id, Kind: protocol.PointTurn, State: protocol.PointOpen, TurnID: r.id, AtMs: now(),
	}}
	return true
}

// atWork has the tools of the turn at work: what changes from now on is theirs.
func (f *turnFiles) atWork() {
	if f.joinLook(true); f != nil && f.ready {
		f.ready = false
		f.mark(f.point.ID, true)
	}
}

// afterFiles has somebody look at what tools did, beside what the turn does next. Its next tools wait for that, and so does its end.
func (r *run) afterFiles(ctx context.Context) {
	f := r.files
	if f == nil {
		return
	}
	f.joinLook(true)
	if working, _ := f.marked(f.point.ID); !working {
		return
	}
	f.mark(f.point.ID, false)
	ctx = context.WithoutCancel(ctx)
	f.beside(func() error { return f.lookAfter(ctx) }, func(err error) {
		f.seenTo([]protocol.PointID{f.point.ID})
		r.filesFailed(err)
		r.countFiles(ctx)
	})
}

// lookAfter looks at what tools did, unless another look has seen that meanwhile.
func (f *turnFiles) lookAfter(ctx context.Context) (err error) {
	if _, open := f.marked(f.point.ID); open || f.hasSaid() {
		err = f.lookFor(ctx, false, func(deltas []delta) []persistence.FileChange {
			return f.attribute(append(deltas, f.saidDeltas(ctx, deltas)...))
		})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(err, f.unsaid)
}

// countFiles has the point tell how many files it is about: another session may have seen a change that both may have made.
func (r *run) countFiles(ctx context.Context) {
	count, err := r.eng.store.PointCount(ctx, r.files.point.ID)
	if err != nil {
		r.eng.Log.Error("changes of files are not counted", "turn", r.id, "error", err)
		return
	}
	p := &r.files.point
	if p.Files != count.Files || p.Unkept != count.Unkept {
		p.Files, p.Unkept, r.files.kept = count.Files, count.Unkept, false
	}
}

// filesFailed tells that files cannot be brought back to before the turn.
func (r *run) filesFailed(err error) {
	if err == nil || r.files.point.Unrestorable != "" {
		return
	}
	r.eng.Log.Error("files cannot be brought back to before this turn", "session", r.session.id, "turn", r.id, "error", err)
	r.files.point.Unrestorable, r.files.kept = err.Error(), false
}

// resumeFiles goes on with the point of a turn that was interrupted. What its tools did then, nobody has looked at: it may also have
// been somebody else.
func (r *run) resumeFiles(ctx context.Context) {
	if !r.resumed || r.eng.Files.Off {
		return
	}
	p, err := r.eng.store.TurnPoint(ctx, r.session.key, r.id)
	if errors.Is(err, persistence.ErrNotFound) {
		return
	}
	if !r.openFiles() {
		return
	}
	f := r.files
	f.begun = true
	if err == nil {
		f.point, f.kept = p.FilePoint, true
		err = f.lookFor(ctx, false, func(deltas []delta) []persistence.FileChange {
			return f.changes(deltas, []protocol.PointID{f.point.ID}, true)
		})
	}
	r.filesFailed(err)
	r.countFiles(ctx)
}

// leaveFiles gives the workspace back when the turn is over, or left.
func (r *run) leaveFiles() {
	if f := r.files; f != nil {
		f.joinLook(true)
		f.seenTo([]protocol.PointID{f.point.ID})
		f.forgo()
		r.eng.tidyGrown()
	}
}

// into stores what is new of the point with a commit of its turn, and tells of it if there is something to tell.
func (f *turnFiles) into(c *persistence.Commit) []change.Event {
	if f == nil || f.kept {
		return nil
	}
	c.Files = persistence.FileCommit{Workspace: f.root, Points: []persistence.StoredPoint{{FilePoint: f.point}}}
	if f.point.Files == 0 && f.point.Unrestorable == "" {
		return nil
	}
	return []change.Event{pointEvent(f.point)}
}

// stored is called when that commit is durable.
func (f *turnFiles) stored() {
	if f != nil {
		f.kept, f.begun = true, true
	}
}

// close is into for the turn's own commit. A point without a change is none.
func (f *turnFiles) close(c *persistence.Commit) []change.Event {
	switch {
	case f == nil:
		return nil
	case f.point.Files > 0 || f.point.Unrestorable != "":
		f.point.State, f.kept = protocol.PointClosed, false
		return f.into(c)
	case f.begun:
		c.Files = persistence.FileCommit{Workspace: f.root, Forget: []protocol.PointID{f.point.ID}}
	}
	return nil
}

func pointEvent(p protocol.FilePoint) change.Event {
	return change.Event{Event: protocol.Event{Type: protocol.EventFilePoint, TurnID: p.TurnID, Point: &p}}
}
