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

// Cursor is a position in the tree of nodes. Reading continues from it towards the root.
type Cursor struct {
	Branch     int64
	Generation int64
	Done       bool // the root was already read
}

// selectNodesDown reads the nodes of one branch from a place towards its start.
const selectNodesDown = `
SELECT place, node_id, frame, turn_id, at, body, intact(nodes n)
FROM nodes n
WHERE place BETWEEN ? AND ?
ORDER BY place DESC
LIMIT ?`

// pathBytes is the size in bytes of the nodes after which a page ends. The last node may exceed it.
const pathBytes = 4 << 20

// Path reads up to limit nodes from a cursor towards the root, newest first, and returns the cursor
// for the next page. A page with large nodes is shorter, but has at least one node. Parent is
// filled in except for the last node of the page.
func (r *Reader) Path(ctx context.Context, from Cursor, limit int) ([]protocol.Node, Cursor, error) {
	var nodes []protocol.Node
	for rest := (nodeScan{bytes: pathBytes}); len(nodes) < limit && !from.Done; {
		page, err := list(ctx, r.pool, rest.next, selectNodesDown, place(from.Branch, 0), place(from.Branch, from.Generation), limit-len(nodes))
		if err != nil {
			return nil, from, r.pool.ofBranch(ctx, from.Branch, err)
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

// ofBranch adds the session of a branch to the error of a damaged node.
func (p *readPool) ofBranch(ctx context.Context, branch int64, err error) error {
	if e, ok := errors.AsType[*DamagedRowError](err); ok {
		// If the session cannot be read, the error is still correct.
		_ = p.row(ctx, "SELECT session_id FROM branches JOIN sessions USING (session) WHERE branches.branch = ?", []any{branch}, &e.Session)
	}
	return err
}

// parentCursor returns the position from which a branch continues its parent branch. Done: it has
// no parent.
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

// nodeScan scans nodes until their bodies exceed the remaining bytes.
type nodeScan struct{ bytes int }

// next is the scan function for list. It returns errEnough when no bytes remain.
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
	var b nodeBody
	if err := decode(body, &b, "node "+string(n.ID)); err != nil {
		return err
	}
	n.Generation = at & 0xffffffff
	n.Message, n.Plugin, n.FrameOpen, n.Kept = b.Message, b.Plugin, b.FrameOpen, b.Kept
	return nil
}

// selectNode reads one node by its id.
const selectNode = `
SELECT place, node_id, frame, turn_id, at, body, intact(nodes n)
FROM nodes n
WHERE node_id = ?`

// Nodes reads nodes by id, in the order of ids. Unknown ids are left out. Parent is not filled in.
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

// Locate returns the position of a node on the path that ends at leaf. A node on another path is
// ErrNotFound. It reads one row per branch, however long the path is.
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

// Common returns the newest node that two paths have in common. Paths of one session always have
// one; otherwise Done is set and Generation is -1.
func (r *Reader) Common(ctx context.Context, a, b Cursor) (Cursor, error) {
	passed := map[int64]int64{} // the generation at which the path from a leaves each branch
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

// Place returns the position of a node on any path, or fails with ErrNotFound.
func (r *Reader) Place(ctx context.Context, id protocol.NodeID) (Cursor, error) {
	var at int64
	if err := r.pool.row(ctx, "SELECT place FROM nodes WHERE node_id = ?", []any{id}, &at); err != nil {
		return Cursor{}, missingNode(id, err)
	}
	return Cursor{Branch: at >> 32, Generation: at & 0xffffffff}, nil
}

// Pins lists the nodes that a session keeps reachable, oldest pin first.
func (r *Reader) Pins(ctx context.Context, session int64) ([]Pin, error) {
	return list(ctx, r.pool, func(rows *sql.Rows, p *Pin) error { return rows.Scan(&p.Node, &p.Reason, &p.AtMs) },
		"SELECT node_id, reason, at FROM pins WHERE session = ? ORDER BY at, node_id", session)
}

// Reversed reverses a page of Path in place, so that it is in the order of events, and returns it.
func Reversed(nodes []protocol.Node) []protocol.Node {
	slices.Reverse(nodes)
	return nodes
}

// missingNode adds the id of the node to the error of a read.
func missingNode(id protocol.NodeID, err error) error {
	if errors.Is(err, ErrNotFound) {
		return &NotFoundError{What: "node", ID: string(id)}
	}
	return fmt.Errorf("node %s: %w", id, err)
}

// selectNodesUp reads the nodes of one branch between two places, oldest first.
const selectNodesUp = `
SELECT place, node_id, frame, turn_id, at, body, intact(nodes n)
FROM nodes n
WHERE place BETWEEN ? AND ?
ORDER BY place
LIMIT ?`

// Forward reads up to limit nodes of the path that ends at leaf, oldest first, from a generation on.
// A page ends with its branch or when its nodes are large, but has at least one node unless the path
// has none. Parent is not filled in.
func (r *Reader) Forward(ctx context.Context, leaf Cursor, from int64, limit int) ([]protocol.Node, error) {
	at := leaf
	for {
		parent, err := r.parentCursor(ctx, at.Branch)
		if err != nil {
			return nil, err
		}
		if parent.Done || parent.Generation < from {
			break
		}
		at = parent
	}
	scan := nodeScan{bytes: pathBytes}
	nodes, err := list(ctx, r.pool, scan.next, selectNodesUp, place(at.Branch, from), place(at.Branch, at.Generation), limit)
	return nodes, r.pool.ofBranch(ctx, at.Branch, err)
}

// turnsOfRange lists the turns of the nodes in one branch up to a place.
const turnsOfRange = `
SELECT DISTINCT turn_id
FROM nodes
WHERE place BETWEEN ? AND ? AND turn_id <> ''`

// TurnCount returns the number of turns on the path that ends at a node. It reads each node of the path.
func TurnCount(ctx context.Context, r *Reader, id protocol.NodeID) (int64, error) {
	at, err := r.Place(ctx, id)
	turns := map[protocol.TurnID]bool{}
	for err == nil && !at.Done {
		var some []protocol.TurnID
		some, err = list(ctx, r.pool, func(rows *sql.Rows, turn *protocol.TurnID) error { return rows.Scan(turn) }, turnsOfRange, place(at.Branch, 0), place(at.Branch, at.Generation))
		for _, turn := range some {
			turns[turn] = true
		}
		if err == nil {
			at, err = r.parentCursor(ctx, at.Branch)
		}
	}
	return int64(len(turns)), err
}
