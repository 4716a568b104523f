package engine

import (
	"context"

	"lashd/engine/receipt"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// rewindFiles restores the files of a session, and its history if p asks for both. It holds the
// session until the rewind has ended, so that no turn or command runs beside it. A retried request
// first lets an interrupted rewind of its key finish and then returns the stored result.
func (e *Engine) rewindFiles(ctx context.Context, p *protocol.SessionRewindParams) (*protocol.SessionRewindResult, error) {
	return receipt.Once(ctx, e.receipts, "session/rewind", p.Key(), p, func(rc receipt.Request) (*protocol.SessionRewindResult, error) {
		held, err := e.holdIdle(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		defer held.release()
		if first, hit, err := receipt.Find[protocol.SessionRewindResult](ctx, e.store, rc); hit || err != nil {
			return first, err // an interrupted rewind was finished just now
		}
		return e.Files.Rewind(ctx, rewoundSession{held}, p, rc)
	})
}

// holdIdle takes the hold of a session. It fails with *TurnActiveError if a turn runs or is queued,
// and otherwise waits for commands that hold the session. The caller releases the hold.
func (e *Engine) holdIdle(ctx context.Context, id protocol.SessionID) (*sessionHold, error) {
	w, err := do(ctx, e, id, func(_ context.Context, st *state) (*sessionHold, error) {
		if len(st.queue.Turns()) > 0 {
			return nil, &TurnActiveError{TurnID: st.queue.Turns()[0].ID}
		}
		w := st.holds.request(ctx, st)
		st.turns.startNext()
		return w, nil
	})
	if err != nil {
		return nil, err
	}
	return w, w.acquire()
}

// resumeRewinds finishes the rewinds that an earlier daemon began. It requests the holds on the
// actor before any turn can start, and does the work on goroutines of its own.
func (h *sessionHistory) resumeRewinds() {
	st := h.st
	for _, p := range h.unfinished {
		held := st.holds.request(st.ctx, st)
		st.eng.group.GoActor(func() {
			if err := resumeRewind(held, &p); err != nil && st.ctx.Err() == nil {
				st.eng.Log.Error("cannot finish interrupted rewind", "session", st.id, "point", p.ID, "error", err)
			}
		})
	}
}

// resumeRewind waits for the hold, finishes one rewind and releases the hold.
func resumeRewind(held *sessionHold, p *persistence.StoredPoint) error {
	defer held.release()
	if err := held.waitGranted(); err != nil { // granted does not open plugins, which may fail to open
		return err
	}
	return held.owner.eng.Files.Resume(held.ctx, rewoundSession{held}, p)
}

// rewoundSession implements undo.Session for a session that is held while its files are rewound.
// Its methods wait for the session's actor. They fail with ErrReloaded if the session was loaded
// again, because the hold ended with the old state.
type rewoundSession struct{ *sessionHold }

// on runs f on the actor, on the state that granted the hold.
func (s rewoundSession) on(ctx context.Context, f func(context.Context, *state) error) error {
	_, err := onState(s.owner, func(ctx context.Context, st *state) (struct{}, error) { return struct{}{}, f(ctx, st) })
	return err
}

// Row returns the key of the session in the store.
func (s rewoundSession) Row() int64 { return s.owner.session.key }

// Cwd returns the workspace as of the newest commit.
func (s rewoundSession) Cwd() string { return s.owner.newestRow.Load().Cwd }

// Target returns the node that history moves to and the result so far. If only files are rewound,
// the node is empty.
func (s rewoundSession) Target(ctx context.Context, p *protocol.SessionRewindParams) (node protocol.NodeID, result *protocol.SessionRewindResult, err error) {
	err = s.on(ctx, func(ctx context.Context, st *state) error {
		if p.Files == protocol.RewindOnly {
			result = &protocol.SessionRewindResult{Head: st.row.Head, Seq: st.row.Seq}
			return nil
		}
		to, r, err := st.history.target(ctx, p)
		if err == nil {
			node, result = to.node.ID, r
		}
		return err
	})
	return node, result, err
}

// TurnsAfter returns the turns whose nodes come after a node on the active path. Their file points
// are undone.
func (s rewoundSession) TurnsAfter(ctx context.Context, node protocol.NodeID) (map[protocol.TurnID]bool, error) {
	turns := map[protocol.TurnID]bool{}
	return turns, s.on(ctx, func(ctx context.Context, st *state) error {
		for n, err := range st.history.back(ctx, st.history.leaf(), 100) {
			if err != nil || n.ID == node {
				return err
			}
			turns[n.TurnID] = true
		}
		return &persistence.NotFoundError{What: "node", ID: string(node)}
	})
}

// Begin stores the journal of the rewind before the first file changes, so that the next daemon can
// finish it.
func (s rewoundSession) Begin(ctx context.Context, rows persistence.FileCommit) error {
	return s.on(ctx, func(ctx context.Context, st *state) error {
		return st.commit(ctx, st.change(persistence.Commit{Files: rows}))
	})
}

// Tell stores an issue as an event of the session.
func (s rewoundSession) Tell(ctx context.Context, issue protocol.Issue) error {
	return s.on(ctx, func(ctx context.Context, st *state) error { return st.commitEvents(ctx, issueEvent("", issue)) })
}

// Finish stores the outcome. After files were changed it retries until the store has space, while
// the session stays held: no later change may be stored before the outcome. If lashd stops first,
// the next daemon finishes the rewind.
func (s rewoundSession) Finish(ctx context.Context, o undo.Outcome) error {
	store := func(ctx context.Context, st *state) error { return s.store(ctx, st, o) }
	if o.Point == nil {
		return s.on(ctx, store)
	}
	life, eng := s.owner.ctx, s.owner.eng
	return retryUntilSpace(life, func() error { return s.on(life, store) }, func(err error) {
		eng.Log.Error("cannot store the rewind yet; retrying", "session", s.owner.id, "point", o.Point.ID, "error", err)
	})
}

// store commits the outcome of a rewind: the file point if files were changed, the new leaf if
// history moves, and the receipt. An abandoned rewind (GivenUp) prunes its file point.
func (rewoundSession) store(ctx context.Context, st *state, o undo.Outcome) error {
	c := st.change(persistence.Commit{})
	if p := o.Point; p != nil {
		c.Files = persistence.FileCommit{Workspace: p.Root, Points: []persistence.StoredPoint{*p}}
		if o.GivenUp {
			c.Files.Pruned = c.Files.Points
		}
		c.Tell(undo.Event(p.FilePoint))
	}
	if o.To != "" && o.To != st.row.Head.Leaf {
		to, _, err := st.history.target(ctx, &protocol.SessionRewindParams{SessionID: st.id, ToNode: o.To})
		if err != nil {
			return err
		}
		st.history.moveLeaf(ctx, c, to, o.Result)
	}
	if o.Result != nil {
		o.Result.Seq = c.Seq()
		c.Receipt = o.Request.With(o.Result)
	}
	if len(c.Told()) == 0 && c.Receipt == nil {
		return nil
	}
	return st.commit(ctx, c)
}
