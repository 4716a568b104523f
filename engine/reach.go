package engine

import (
	"context"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// reach refuses a session that an asker names and may not: all but its own, those that work for it and those that it has asked for, in its
// workspace. Who ships with lashd may name any; an empty id names none.
func (e *Engine) reach(ctx context.Context, by *requester, id protocol.SessionID) error {
	if by == nil || !by.bound || id == "" || id == by.session {
		return nil
	}
	row, err := e.store.Session(ctx, id)
	if isGone(err) {
		return &plugin.ReachError{SessionID: id} // the same error as for a forbidden session, so that it does not reveal which ids exist
	}
	if err != nil {
		return err
	}
	c, err := e.limits(ctx, by)
	if err != nil {
		return err
	}
	mine, err := e.descendsFrom(ctx, row.Relation, by.session)
	if err == nil && !(mine && insideRoots(&c, row.Cwd)) {
		err = &plugin.ReachError{SessionID: id}
	}
	return err
}

// stemsFrom tells whether a session is there because of another one: it works for it, or was asked for from it, over any number of others.
func (e *Engine) descendsFrom(ctx context.Context, r protocol.Relation, root protocol.SessionID) (bool, error) {
	seen := map[protocol.SessionID]bool{"": true}
	for todo := []protocol.SessionID{r.Parent, r.AskedBy}; len(todo) > 0; todo = todo[1:] {
		above := todo[0]
		if above == root {
			return true, nil
		}
		if seen[above] {
			continue
		}
		seen[above] = true
		row, err := e.store.Session(ctx, above)
		switch {
		case isGone(err):
		case err != nil:
			return false, err
		default:
			todo = append(todo, row.Relation.Parent, row.Relation.AskedBy)
		}
	}
	return false, nil
}
