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

// Resume finishes a rewind that an earlier daemon began, or gives it up.
func (f *Files) Resume(ctx context.Context, s Session, p *persistence.StoredPoint) error {
	r := &rewind{files: f, session: s, p: &protocol.SessionRewindParams{SessionID: p.SessionID}}
	err := r.resume(ctx, p)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.giveUp(ctx, p, err)
}

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
		r.files.cfg.Log.Warn("what a rewind has left is not removed", "session", p.SessionID, "error", err)
	}
	r.files.cfg.Log.Info("a rewind that was cut off is brought to its end", "session", p.SessionID, "point", p.ID)
	return r.complete(ctx, p, j.Steps)
}

// reopenTimeout is how long a rewind that was cut off waits for its workspace, and its session with it: tools that run there may
// themselves wait for a turn of the session.
const reopenTimeout = 10 * time.Minute

// reopenInterval is how often it tries.
const reopenInterval = time.Second

// reopen locks the workspace of a rewind that was cut off. It waits for what hinders that for now, while the session is held; for space it
// waits without end, as Finish does.
func (r *rewind) reopen(ctx context.Context, p *persistence.StoredPoint, j *journal) error {
	limit := time.Now().Add(reopenTimeout)
	for told := false; ; told = true {
		err := r.tryReopen(ctx, p, j)
		if err == nil || hopeless(err) || !noSpace(err) && time.Now().After(limit) {
			return err
		}
		if !told {
			r.tellWaits(ctx, p, err)
		}
		select {
		case <-time.After(reopenInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func noSpace(err error) bool {
	return errors.Is(err, persistence.ErrFull) || errors.Is(err, persistence.ErrBusy)
}

// tryReopen is reopen without waiting.
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

// errHistoryMoved means that turns came after a rewind that was cut off: it would undo them, too.
var errHistoryMoved = errors.New("history has gone on since")

// restore makes a rewind again of its journal, unless history has gone on since.
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

// hopeless tells whether an error does not go away by waiting.
func hopeless(err error) bool {
	return errors.Is(err, errHistoryMoved) || errors.Is(err, persistence.ErrNotFound) || errors.As(err, new(*param.Error)) || errors.As(err, new(*filepoint.TooManyError))
}

// tellWaits tells that a rewind that was cut off waits, and the session's turns with it.
func (r *rewind) tellWaits(ctx context.Context, p *persistence.StoredPoint, why error) {
	r.files.cfg.Log.Warn("a rewind that was cut off waits", "session", p.SessionID, "point", p.ID, "because", why)
	issue := protocol.Issue{Kind: "runtime", Code: "rewind_waits", Message: fmt.Sprintf("an undo that was cut off goes on later, and turns after it: %v", why)}
	if err := r.session.Tell(ctx, issue); err != nil {
		r.files.cfg.Log.Warn("nobody is told that a rewind waits", "session", p.SessionID, "error", err)
	}
}

// giveUp closes the point of a rewind that cannot be finished. What it was to undo is not undone, and can be undone again: so no changes
// of it are kept.
func (r *rewind) giveUp(ctx context.Context, p *persistence.StoredPoint, why error) error {
	r.files.cfg.Log.Error("a rewind that was cut off is given up", "session", p.SessionID, "point", p.ID, "because", why)
	p.State, p.Journal, p.To, p.Files = protocol.PointClosed, nil, "", 0
	p.Unrestorable = fmt.Sprintf("the undo was cut off and is given up: %v", why)
	return r.session.Finish(ctx, Outcome{Point: p, GivenUp: true})
}
