package engine

import (
	"context"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// reach reports whether a requester may name session id in a request: nil if it may,
// *plugin.ReachError if not, or a store error.
//
// A requester may always name its own session. It may also name sessions that descend from its own
// and work below a directory that its limits allow. Clients (by is nil) and plugins that ship with
// lashd (not bound) may name any session. An empty id names none and passes. Whether the session
// exists is not revealed: a missing session gives the same error as a forbidden one.
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

// descendsFrom reports whether root is among the ancestors of a session with relation r. Both the
// parent and the session that asked for it count as ancestors, over any number of generations.
// Deleted ancestors end their line of the search. It reads one row for each ancestor.
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
