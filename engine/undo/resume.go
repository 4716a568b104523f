package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/engine/filepoint"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Resume completes a rewind that a crash interrupted, or gives it up if that is impossible. The
// engine calls it when it loads the session, before any turn runs. It returns an error only if ctx
// ends or the outcome cannot be stored.
func (f *Files) Resume(ctx context.Context, s Session, p *persistence.StoredPoint) error {
	r := &rewind{files: f, session: s, p: &protocol.SessionRewindParams{SessionID: p.SessionID}}
	err := r.resume(ctx, p)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.giveUp(ctx, p, err)
}

// resume completes the rewind from its journal. On an error no further file has changed.
func (r *rewind) resume(ctx context.Context, p *persistence.StoredPoint) error {
	var j journal
	if err := json.Unmarshal(p.Journal, &j); err != nil {
		return fmt.Errorf("journal of %s: %w", p.ID, err)
	}
	if err := r.reopen(ctx, p, &j); err != nil {
		return err
	}
	defer r.close()
	if err := r.dir.Tidy(j.Steps); err != nil {
		r.files.cfg.Log.Warn("cannot remove temporary files of an interrupted rewind", "session", p.SessionID, "error", err)
	}
	r.files.cfg.Log.Info("completing an interrupted rewind", "session", p.SessionID, "point", p.ID)
	return r.complete(ctx, p, j.Steps)
}

// reopenTimeout bounds how long an interrupted rewind waits for its workspace. Its session waits
// with it, and tools in that workspace may in turn wait for the session, which would be a deadlock.
const reopenTimeout = 10 * time.Minute

// reopenInterval is the time between two attempts.
const reopenInterval = time.Second

// reopen locks the workspace of an interrupted rewind. It retries temporary errors for
// reopenTimeout while the session is held. It waits for disk space without a limit, as Finish does.
func (r *rewind) reopen(ctx context.Context, p *persistence.StoredPoint, j *journal) error {
	limit := time.Now().Add(reopenTimeout)
	for notified := false; ; notified = true {
		err := r.tryReopen(ctx, p, j)
		if err == nil || hopeless(err) || !noSpace(err) && time.Now().After(limit) {
			return err
		}
		if !notified {
			r.notifyWaiting(ctx, p, err)
		}
		select {
		case <-time.After(reopenInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// noSpace reports whether a write failed because the disk is full or the database is busy.
func noSpace(err error) bool {
	return errors.Is(err, persistence.ErrFull) || errors.Is(err, persistence.ErrBusy)
}

// tryReopen makes one attempt of reopen. On success the workspace is locked and scanned.
func (r *rewind) tryReopen(ctx context.Context, p *persistence.StoredPoint, j *journal) error {
	if err := r.restore(ctx, j); err != nil {
		return err
	}
	if err := r.open(ctx, p.Root); err != nil {
		return err
	}
	_, err := r.workspace.look(ctx, true, r.workspace.attribute)
	if err != nil {
		r.close()
	}
	return err
}

// errHistoryMoved means that turns ran after the rewind was interrupted. Completing it would undo
// them.
var errHistoryMoved = errors.New("newer turns have run since")

// restore rebuilds the rewind from its journal. It returns errHistoryMoved if the session has newer
// turns.
func (r *rewind) restore(ctx context.Context, j *journal) error {
	p := &protocol.SessionRewindParams{SessionID: r.p.SessionID, Files: protocol.RewindOnly}
	_, result, err := r.session.Target(ctx, p)
	if err != nil {
		return err
	}
	if result.Head.Leaf != j.Leaf {
		return errHistoryMoved
	}
	if j.ToNode != "" {
		p.ToNode, p.Files = j.ToNode, protocol.RewindAlso
		if _, result, err = r.session.Target(ctx, p); err != nil {
			return err
		}
	}
	result.Files = j.Files
	r.to, r.result, r.request = j.ToNode, result, receipt.Request{Key: j.Key, Hash: j.Hash}
	return nil
}

// hopeless reports whether waiting cannot fix an error.
func hopeless(err error) bool {
	return errors.Is(err, errHistoryMoved) || errors.Is(err, persistence.ErrNotFound) || errors.As(err, new(*param.Error)) || errors.As(err, new(*filepoint.TooManyError))
}

// notifyWaiting logs, and tells clients, that an interrupted rewind waits and that it delays new turns.
func (r *rewind) notifyWaiting(ctx context.Context, p *persistence.StoredPoint, why error) {
	r.files.cfg.Log.Warn("an interrupted rewind is waiting", "session", p.SessionID, "point", p.ID, "because", why)
	issue := protocol.Issue{Kind: "runtime", Code: "rewind_waits", Message: fmt.Sprintf("an interrupted undo is waiting to continue, and new turns wait for it: %v", why)}
	if err := r.session.Tell(ctx, issue); err != nil {
		r.files.cfg.Log.Warn("cannot report that a rewind is waiting", "session", p.SessionID, "error", err)
	}
}

// giveUp closes the point of a rewind that cannot be completed. It removes the rows of its changes,
// so the turns that it should have undone still count as done and can be undone again.
func (r *rewind) giveUp(ctx context.Context, p *persistence.StoredPoint, why error) error {
	r.files.cfg.Log.Error("gave up an interrupted rewind", "session", p.SessionID, "point", p.ID, "because", why)
	p.State, p.Journal, p.To, p.Files = protocol.PointClosed, nil, "", 0
	p.Unrestorable = fmt.Sprintf("the undo was interrupted and could not be completed: %v", why)
	return r.session.Finish(ctx, Outcome{Point: p, GivenUp: true})
}
