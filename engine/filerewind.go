package engine

import (
	"context"
	"maps"
	"slices"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxRewind is how many files one rewind brings back at most: they stand in one commit.
const maxRewind = 10_000

// fileRewind is a rewind of files. It holds its session, so that no turn starts, and the workspace.
type fileRewind struct {
	*workspace
	held *sessionHold
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
		defer held.release()
		if first, hit, err := replayed[protocol.SessionRewindResult](ctx, e, rc); hit || err != nil {
			return first, err // an interrupted rewind was brought to its end just now
		}
		r := &fileRewind{held: held, p: p, rc: rc}
		return r.run(ctx)
	})
}

// holdIdle holds a session, unless something runs in it.
func (e *Engine) holdIdle(ctx context.Context, id protocol.SessionID) (*sessionHold, error) {
	w, err := do(context.WithoutCancel(ctx), e, id, func(_ context.Context, st *state) (*sessionHold, error) {
		if len(st.queue.Turns()) > 0 {
			return nil, &TurnActiveError{TurnID: st.queue.Turns()[0].ID}
		}
		w := st.requestHold(ctx)
		st.startNextTurn()
		return w, nil
	})
	if err != nil {
		return nil, err
	}
	return w, w.taken()
}

func (r *fileRewind) run(ctx context.Context) (*protocol.SessionRewindResult, error) {
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
func (r *fileRewind) on(ctx context.Context, f func(context.Context, *state) error) error {
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
func (r *fileRewind) enter(ctx context.Context, cwd string) (err error) {
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

func (r *fileRewind) leave() {
	if r.dir != nil {
		r.dir.Close() // nothing is written through it
		r.dir = nil
	}
	r.giveBack()
	r.forgo()
}
