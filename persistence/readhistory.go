package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"lashd/rpc/protocol"
)

// Cursor stands at a node of a path: reading goes from it towards the root.
type Cursor struct {
	Branch     int64
	Generation int64
	Done       bool // the root was passed
}

const selectNodesDown = `
SELECT place, node_id, frame, turn_id, at, body, intact(nodes n)
FROM nodes n
WHERE place BETWEEN ? AND ?
ORDER BY place DESC
LIMIT ?`

// pathBytes is how large nodes are in the database, together, with which a page ends. The last of them may make it more.
const pathBytes = 4 << 20

// Path reads up to limit nodes of a path, the newest of them first, from a cursor on, and where to go on. Of large nodes there are
// fewer on a page, but one at least. Parent edges are filled in except for the last node of a page.
func (r *Reader) Path(ctx context.Context, from Cursor, limit int) ([]protocol.Node, Cursor, error) {
	var nodes []protocol.Node
	for rest := (nodeScan{bytes: pathBytes}); len(nodes) < limit && !from.Done; {
		page, err := list(ctx, r.pool, rest.next, selectNodesDown, place(from.Branch, 0), place(from.Branch, from.Generation), limit-len(nodes))
		if err != nil {
			return nil, from, r.ofBranch(ctx, from.Branch, err)
		}
		nodes = append(nodes, page...)
		if len(nodes) == limit || rest.bytes <= 0 {
			from.Generation = nodes[len(nodes)-1].Generation - 1
			from.Done = from.Generation < 0
			break
		}
		if from, err = r.parentCursor(ctx, from.Branch); err != nil {
			return nil, from, err
		}
	}
	for i := 1; i < len(nodes); i++ {
		nodes[i-1].Parent = nodes[i].ID
	}
	return nodes, from, nil
}

// ofBranch adds to the error of a damaged node the session that the branch belongs to.
func (r *Reader) ofBranch(ctx context.Context, branch int64, err error) error {
	if e, ok := errors.AsType[*DamagedRowError](err); ok {
		// Without a session the error says less, and is no less right.
		_ = r.pool.row(ctx, "SELECT session_id FROM branches JOIN sessions USING (session) WHERE branches.branch = ?", []any{branch}, &e.Session)
	}
	return err
}

func (r *Reader) parentCursor(ctx context.Context, branch int64) (Cursor, error) {
	var parent, generation sql.NullInt64
	if err := r.pool.row(ctx, parentOf, []any{branch}, &parent, &generation); err != nil {
		return Cursor{}, fmt.Errorf("branch %d: %w", branch, err)
	}
	if parent.Int64 >= branch {
		return Cursor{}, wrongParent(branch, parent.Int64)
	}
	return Cursor{Branch: parent.Int64, Generation: generation.Int64, Done: !parent.Valid}, nil
}

// nodeScan reads nodes as long as bytes are left for their bodies.
type nodeScan struct{ bytes int }

func (s *nodeScan) next(rows *sql.Rows, n *protocol.Node) error {
	if s.bytes <= 0 {
		return errEnough
	}
	var at int64
	var body sql.RawBytes
	var intact bool
	if err := rows.Scan(&at, &n.ID, &n.Frame, &n.TurnID, &n.AtMs, &body, &intact); err != nil {
		return err
	}
	if err := rowIntact(intact, "nodes", n.ID, ""); err != nil {
		return err
	}
	s.bytes -= len(body)
	var b protocol.NodeBody
	if err := decode(body, &b, "node "+string(n.ID)); err != nil {
		return err
	}
	n.Generation = at & 0xffffffff
	n.Message, n.Plugin, n.FrameOpen = b.Message, b.Plugin, b.FrameOpen
	return nil
}

const selectNode = `
SELECT place, node_id, frame, turn_id, at, body, intact(nodes n)
FROM nodes n
WHERE node_id = ?`

// Nodes reads nodes by id, in any order. Ids that are not stored are left out.
func (r *Reader) Nodes(ctx context.Context, ids []protocol.NodeID) ([]protocol.Node, error) {
	var all []protocol.Node
	whole := nodeScan{bytes: math.MaxInt}
	for _, id := range ids {
		found, err := list(ctx, r.pool, whole.next, selectNode, id)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// Locate finds a node on the path that ends at a leaf, or fails with ErrNotFound.
func (r *Reader) Locate(ctx context.Context, leaf Cursor, id protocol.NodeID) (Cursor, error) {
	at, err := r.Place(ctx, id)
	if err != nil {
		return Cursor{}, err
	}
	for c := leaf; !c.Done; {
		if at.Branch == c.Branch && at.Generation <= c.Generation {
			return at, nil
		}
		if c, err = r.parentCursor(ctx, c.Branch); err != nil {
			return Cursor{}, err
		}
	}
	return Cursor{}, &NotFoundError{What: "node", ID: string(id)}
}

// Common finds the newest place that the paths from two places have in common. There is one if both are of one session.
func (r *Reader) Common(ctx context.Context, a, b Cursor) (Cursor, error) {
	passed := map[int64]int64{} // by branch, where the path from a leaves it
	var err error
	for ; !a.Done && err == nil; a, err = r.parentCursor(ctx, a.Branch) {
		passed[a.Branch] = a.Generation
	}
	for ; !b.Done && err == nil; b, err = r.parentCursor(ctx, b.Branch) {
		if at, ok := passed[b.Branch]; ok {
			return Cursor{Branch: b.Branch, Generation: min(at, b.Generation)}, nil
		}
	}
	return Cursor{Generation: -1, Done: true}, err
}

// Place finds a node, on whatever path it is.
func (r *Reader) Place(ctx context.Context, id protocol.NodeID) (Cursor, error) {
	var at int64
	if err := r.pool.row(ctx, "SELECT place FROM nodes WHERE node_id = ?", []any{id}, &at); err != nil {
		return Cursor{}, missingNode(id, err)
	}
	return Cursor{Branch: at >> 32, Generation: at & 0xffffffff}, nil
}

// Pins lists what a session keeps reachable.
func (r *Reader) Pins(ctx context.Context, session int64) ([]Pin, error) {
	return list(ctx, r.pool, func(rows *sql.Rows, p *Pin) error { return rows.Scan(&p.Node, &p.Reason, &p.AtMs) },
		"SELECT node_id, reason, at FROM pins WHERE session = ? ORDER BY at, node_id", session)
}

// Reversed turns a page of Path into the order in which it happened.
func Reversed(nodes []protocol.Node) []protocol.Node {
	slices.Reverse(nodes)
	return nodes
}

// missingNode names the node that a read did not find.
func missingNode(id protocol.NodeID, err error) error {
	if errors.Is(err, ErrNotFound) {
		return &NotFoundError{What: "node", ID: string(id)}
	}
	return fmt.Errorf("node %s: %w", id, err)
}
