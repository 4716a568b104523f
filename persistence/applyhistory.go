package persistence

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// place returns the primary key of a node (branch, generation) or of an event (session, seq). Keys
// of one owner are consecutive, so a path and a log are range scans. The owner must be below 2^31.
func place(owner, index int64) int64 { return owner<<32 | index }

// applyHistory moves the leaf, then appends the nodes and events of a commit. It returns the nodes
// as stored.
func applyHistory(ctx context.Context, t *tx, c *change, h *head) ([]protocol.Node, error) {
	if c.Rewind != "" {
		if err := rewind(ctx, t, c, h); err != nil {
			return nil, err
		}
	}
	if c.Restore != "" {
		if err := restoreSnapshot(ctx, t, c, h); err != nil {
			return nil, err
		}
	}
	nodes, err := appendNodes(ctx, t, c, h)
	if err != nil {
		return nil, err
	}
	h.moved = h.moved || c.Config != nil
	return nodes, appendEvents(ctx, t, c.Events, h)
}

// insertNode fails with ErrExists if the id or the place is taken.
const insertNode = `
INSERT INTO nodes (place, node_id, frame, turn_id, at, body)
VALUES (?, ?, ?, ?, ?, ?)`

// appendNodes appends nodes after the leaf. A node that opens a frame starts it; the others join
// the frame of the leaf.
func appendNodes(ctx context.Context, t *tx, c *change, h *head) ([]protocol.Node, error) {
	placed := make([]protocol.Node, len(c.Nodes))
	for i, n := range c.Nodes {
		n.Parent, n.Generation = h.leaf, h.generation+1
		if h.leaf == "" {
			n.Generation = 0
		}
		if n.FrameOpen != nil {
			h.frame = protocol.FrameID(n.ID)
		}
		n.Frame = h.frame
		if err := t.exec(ctx, insertNode, place(h.branch, n.Generation), n.ID, n.Frame, n.TurnID, n.AtMs, c.nodes[i]); err != nil {
			return nil, fmt.Errorf("append node %s: %w", n.ID, err)
		}
		h.leaf, h.generation, h.moved = n.ID, n.Generation, true
		placed[i] = n
	}
	return placed, nil
}

// insertEvent stores an event with the hash of the chain up to it.
const insertEvent = `
INSERT INTO events (place, type, body, chain)
VALUES (?, ?, ?, ?)`

// appendEvents numbers the events and links each to the hash chain of the session.
func appendEvents(ctx context.Context, t *tx, events []Event, h *head) error {
	for _, e := range events {
		h.seq++
		h.chain = chainLink(h.chain, h.id, h.seq, e)
		if err := t.exec(ctx, insertEvent, place(h.session, int64(h.seq)), e.Type, nonNil(e.Body), h.chain); err != nil {
			return fmt.Errorf("append event %d: %w", h.seq, err)
		}
	}
	return nil
}

// chainLink hashes an event together with the hash of the one before it. A changed, missing or
// moved row therefore breaks every later link. Each field is preceded by its length, so that two
// different events never hash the same bytes.
func chainLink(previous []byte, id protocol.SessionID, seq protocol.Seq, e Event) []byte {
	sum := sha256.New()
	sum.Write(previous)
	for _, field := range [][]byte{[]byte(id), binary.BigEndian.AppendUint64(nil, uint64(seq)), []byte(e.Type), e.Body} {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		sum.Write(field)
	}
	return sum.Sum(nil)
}

// parentOf returns where a branch continues another one; NULL for the first branch of a history.
const parentOf = `
SELECT parent_branch, parent_generation
FROM branches
WHERE branch = ?`

// onPath returns the place of a node on the path that ends at (branch, generation), or fails with
// ErrNotFound. It walks up the branches, one row each.
func onPath(ctx context.Context, t *tx, branch, generation int64, id protocol.NodeID) (int64, error) {
	var at int64
	err := t.row(ctx, "SELECT place FROM nodes WHERE node_id = ?", []any{id}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, &NotFoundError{What: "node", ID: string(id)}
	}
	if err != nil {
		return 0, err
	}
	for {
		if at>>32 == branch && at&0xffffffff <= generation {
			return at, nil
		}
		var parent, upTo sql.NullInt64
		if err := t.row(ctx, parentOf, []any{branch}, &parent, &upTo); err != nil {
			return 0, err
		}
		if !parent.Valid {
			return 0, &NotFoundError{What: "node", ID: string(id)}
		}
		if parent.Int64 >= branch {
			return 0, wrongParent(branch, parent.Int64)
		}
		branch, generation = parent.Int64, upTo.Int64
	}
}

// rewind moves the leaf to an ancestor and opens a new branch there. The nodes after the ancestor
// stay on the old branch and remain readable while something pins them. The session's frame becomes
// that of the ancestor.
func rewind(ctx context.Context, t *tx, c *change, h *head) error {
	at, err := onPath(ctx, t, h.branch, h.generation, c.Rewind)
	if err != nil {
		return err
	}
	if err := newBranch(ctx, t, h, at); err != nil {
		return err
	}
	h.leaf, h.generation, h.moved = c.Rewind, at&0xffffffff, true
	return t.row(ctx, "SELECT frame FROM nodes WHERE place = ?", []any{at}, &h.frame)
}

const insertBranch = `
INSERT INTO branches (branch, session, parent_branch, parent_generation)
VALUES (` + nextBranch + `, ?, ?, ?)`

// newBranch opens a branch for the session that continues after the node at a place. 0: it starts a
// new history.
func newBranch(ctx context.Context, t *tx, h *head, after int64) error {
	var parent, generation any
	if after != 0 {
		parent, generation = after>>32, after&0xffffffff
	}
	res, err := t.run(ctx, insertBranch, h.session, parent, generation)
	if err != nil {
		return err
	}
	h.branch, err = res.LastInsertId()
	return err
}
