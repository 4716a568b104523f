package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// forkHistory gives a new session the history of its source up to a node. It copies no nodes: the
// new branch continues the source's branch.
//
// The node must be on the source's path, pinned, or the node of a snapshot; otherwise it fails with
// ErrNotRetained. The session gets the source's current components, those of a snapshot, or none.
// It refers to the same blobs as the source.
func forkHistory(ctx context.Context, t *tx, h *head, n *NewSession) error {
	from := n.Source
	src, err := readHead(ctx, t, from.SessionID)
	if err != nil {
		return err
	}
	at, err := onPath(ctx, t, src.branch, src.generation, from.Node)
	if errors.Is(err, ErrNotFound) {
		err = t.row(ctx, pinnedPlace, []any{from.SessionID, from.Node}, &at)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("node %s: %w", from.Node, ErrNotRetained)
		}
	}
	if err != nil {
		return err
	}
	if err := newBranch(ctx, t, h, at); err != nil {
		return err
	}
	h.leaf, h.generation = from.Node, at&0xffffffff
	if err := t.row(ctx, "SELECT frame FROM nodes WHERE place = ?", []any{at}, &h.frame); err != nil {
		return err
	}
	if !n.Blank {
		if err := t.exec(ctx, cloneComponents, h.session, src.session, n.Snapshot); err != nil {
			return err
		}
	}
	return t.exec(ctx, copyBlobRefs, h.session, src.session)
}
