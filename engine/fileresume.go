package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// resumeRewinds brings rewinds to their end that an earlier daemon has begun. No turn starts before.
func (st *state) resumeRewinds() {
	for _, p := range st.rewinds {
		held := st.requestHold(st.ctx)
		st.eng.actors.Go(func() {
			if err := resumeRewind(held, &p); err != nil && st.ctx.Err() == nil {
				st.eng.Log.Error("a rewind is not brought to its end", "session", st.id, "point", p.ID, "error", err)
			}
		})
	}
}

func resumeRewind(held *sessionHold, p *persistence.StoredPoint) error {
	defer held.release()
	if err := held.granted(); err != nil { // plugins that cannot be opened are no hindrance
		return err
	}
	r := &fileRewind{held: held, p: &protocol.SessionRewindParams{SessionID: p.SessionID}}
	err := r.resume(p)
	if err == nil || held.ctx.Err() != nil {
		return err
	}
	return r.giveUp(p, err)
}

func (r *fileRewind) resume(p *persistence.StoredPoint) error {
	var j rewindJournal
	if err := json.Unmarshal(p.Journal, &j); err != nil {
		return fmt.Errorf("journal of %s: %w", p.ID, err)
	}
	if err := r.retake(p, &j); err != nil {
		return err
	}
	defer r.leave()
	if err := r.dir.Tidy(j.Steps); err != nil {
		r.eng.Log.Warn("what a rewind has left is not removed", "session", p.SessionID, "error", err)
	}
	r.eng.Log.Info("a rewind that was cut off is brought to its end", "session", p.SessionID, "point", p.ID)
	return r.complete(r.held.ctx, p, &j)
}

// rewindPatience is how long a rewind that was cut off waits for its workspace at most, and its session with it: tools that are at
// work there may themselves wait for a turn of the session.
const rewindPatience = 10 * time.Minute

// retake takes the workspace of a rewind that was cut off. What hinders it for now is waited for, while the session is held; want of
// space without end, as by close.
func (r *fileRewind) retake(p *persistence.StoredPoint, j *rewindJournal) error {
	limit := time.Now().Add(rewindPatience)
	for said := false; ; said = true {
		err := r.tryRetake(p, j)
		if err == nil || hopeless(err) || !noSpace(err) && time.Now().After(limit) {
			return err
		}
		if !said {
			r.sayWaits(p, err)
		}
		if err := pause(r.held.ctx, spaceCheck); err != nil {
			return err
		}
	}
}

// tryRetake is retake without waiting.
func (r *fileRewind) tryRetake(p *persistence.StoredPoint, j *rewindJournal) error {
	if err := r.restoreTarget(j); err != nil {
		return err
	}
	if err := r.enter(r.held.ctx, p.Root); err != nil {
		return err
	}
	_, err := r.look(r.held.ctx, true, r.attribute)
	if err != nil {
		r.leave()
	}
	return err
}

// errMovedOn means that turns have come after a rewind that was cut off: it would undo them, too.
var errMovedOn = errors.New("history has gone on since")

// restoreTarget makes a rewind again of its journal, unless history has gone on since.
func (r *fileRewind) restoreTarget(j *rewindJournal) error {
	return r.on(r.held.ctx, func(ctx context.Context, st *state) error {
		if st.row.Head.Leaf != j.Leaf {
			return errMovedOn
		}
		r.rc, r.result = receipt{j.Key, j.Hash}, &protocol.SessionRewindResult{Head: st.row.Head}
		if r.p.ToNode = j.ToNode; j.ToNode != "" {
			to, result, err := st.leafFor(ctx, r.p)
			if err != nil {
				return err
			}
			r.to, r.result = &to, result
		}
		r.result.Files = j.Files
		return nil
	})
}

// hopeless tells whether what hinders a rewind that was cut off does not pass.
func hopeless(err error) bool {
	return errors.Is(err, errMovedOn) || errors.Is(err, persistence.ErrNotFound) || errors.As(err, new(*ParamError)) || errors.As(err, new(*filepoint.TooManyError))
}

// sayWaits tells that a rewind that was cut off waits, and the session's turns with it.
func (r *fileRewind) sayWaits(p *persistence.StoredPoint, why error) {
	eng := r.held.owner.eng
	eng.Log.Warn("a rewind that was cut off waits", "session", p.SessionID, "point", p.ID, "because", why)
	issue := protocol.Issue{Kind: "runtime", Code: "rewind_waits", Message: fmt.Sprintf("an undo that was cut off goes on later, and turns after it: %v", why)}
	err := r.on(r.held.ctx, func(ctx context.Context, st *state) error {
		return st.tell(ctx, issueEvent("", issue))
	})
	if err != nil {
		eng.Log.Warn("nobody is told that a rewind waits", "session", p.SessionID, "error", err)
	}
}

// giveUp closes the point of a rewind that cannot be brought to its end. What it was to undo is not undone, and can be undone anew:
// so nothing is kept of what it was about to change.
func (r *fileRewind) giveUp(p *persistence.StoredPoint, why error) error {
	r.held.owner.eng.Log.Error("a rewind that was cut off is given up", "session", p.SessionID, "point", p.ID, "because", why)
	p.State, p.Journal, p.To, p.Files = protocol.PointClosed, nil, "", 0
	p.Unrestorable = fmt.Sprintf("the undo was cut off and is given up: %v", why)
	return r.close(p.ID, func(ctx context.Context, st *state) error {
		all := []persistence.StoredPoint{*p}
		c := st.change(persistence.Commit{Files: persistence.FileCommit{Workspace: p.Root, Points: all, Pruned: all}})
		c.Tell(pointEvent(p.FilePoint))
		return st.commit(ctx, c)
	})
}

// leftUndone tells whether a point is that of a rewind which was given up.
func leftUndone(p *persistence.StoredPoint) bool { return p.Kind == protocol.PointRewind && p.To == "" }
