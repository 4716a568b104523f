package persistence

import (
	"bytes"
	"context"
	"database/sql"

	"lashd/rpc/protocol"
)

// BranchEnd is a branch with its newest node.
type BranchEnd struct {
	Branch int64
	Last   int64  // generation of its newest node; -1: it has none, or the branch does not exist
	Cwd    string // of its session, or of one that continues from it
}

// Queries for the ends of branches. Nodes of a branch have consecutive places.
const (
	branchEnd = `
SELECT b.branch, coalesce((SELECT max(place) & 0xffffffff FROM nodes WHERE place BETWEEN b.branch << 32 AND b.branch << 32 | 0xffffffff), -1),
  coalesce((SELECT cwd FROM sessions WHERE session = b.session),
    (SELECT s.cwd FROM branches c JOIN sessions s USING (session) WHERE c.parent_branch = b.branch LIMIT 1), '')
FROM branches b`
	branchEnds = branchEnd + `
WHERE b.branch > ?
ORDER BY b.branch
LIMIT ?`
	oneBranchEnd = branchEnd + `
WHERE b.branch = ?`
)

func scanBranchEnd(rows *sql.Rows, b *BranchEnd) error { return rows.Scan(&b.Branch, &b.Last, &b.Cwd) }

// BranchEnds reads up to limit branches after a branch, in order.
func (s *SearchReader) BranchEnds(ctx context.Context, after int64, limit int) ([]BranchEnd, error) {
	return list(ctx, s.pool, scanBranchEnd, branchEnds, after, limit)
}

// BranchEnd reads one branch. A branch that does not exist has no nodes.
func (s *SearchReader) BranchEnd(ctx context.Context, branch int64) (BranchEnd, error) {
	found, err := list(ctx, s.pool, scanBranchEnd, oneBranchEnd, branch)
	if err != nil || len(found) == 0 {
		return BranchEnd{Branch: branch, Last: -1}, err
	}
	return found[0], nil
}

// selectBranch reads the nodes of a branch after a place.
const selectBranch = `
SELECT place, node_id, frame, turn_id, at, body, intact(nodes n)
FROM nodes n
WHERE place > ? AND place < ?
ORDER BY place
LIMIT ?`

// Texts reads up to limit nodes of a branch after a generation, in order. Only nodes with text of a
// message have a body. A damaged node has none either, so that it does not keep others from being
// read.
func (s *SearchReader) Texts(ctx context.Context, branch, after int64, limit int) ([]protocol.Node, error) {
	scan := textScan{nodeScan{bytes: pathBytes}}
	return list(ctx, s.pool, scan.next, selectBranch, place(branch, 0)+after, place(branch+1, 0), limit)
}

// textScan scans nodes and decodes only those with text of a message.
type textScan struct{ nodeScan }

// hasText reports whether the body of a node may have text that a person or a model wrote. Most
// large bodies are tool results, which are expensive to decode.
func hasText(body []byte) bool {
	for _, kind := range []protocol.PartKind{protocol.PartText, protocol.PartProse, protocol.PartCommentary} {
		if bytes.Contains(body, []byte(`"kind":"`+kind+`"`)) {
			return true
		}
	}
	return false
}

func (s *textScan) next(rows *sql.Rows, n *protocol.Node) error {
	if s.bytes <= 0 {
		return errEnough
	}
	var at int64
	var body sql.RawBytes
	var intact bool
	if err := rows.Scan(&at, &n.ID, &n.Frame, &n.TurnID, &n.AtMs, &body, &intact); err != nil {
		return err
	}
	n.Generation = at & 0xffffffff
	s.bytes -= len(body)
	var b nodeBody
	if intact && hasText(body) && decode(body, &b, "node "+string(n.ID)) == nil && !b.Kept {
		n.Message = b.Message
	}
	return nil
}

// SessionTitle is the title of a session.
type SessionTitle struct {
	Session int64 // its number
	Title   string
}

const (
	selectTitles = `
SELECT session, title
FROM sessions
WHERE session > ?
ORDER BY session
LIMIT ?`
	selectTitle = `
SELECT session, title
FROM sessions
WHERE session = ?`
)

func scanTitle(rows *sql.Rows, t *SessionTitle) error { return rows.Scan(&t.Session, &t.Title) }

// Titles reads up to limit titles of sessions after a session, in order.
func (s *SearchReader) Titles(ctx context.Context, after int64, limit int) ([]SessionTitle, error) {
	return list(ctx, s.pool, scanTitle, selectTitles, after, limit)
}

// Title reads the title of a session. It is empty if the session does not exist.
func (s *SearchReader) Title(ctx context.Context, session int64) (SessionTitle, error) {
	found, err := list(ctx, s.pool, scanTitle, selectTitle, session)
	if err != nil || len(found) == 0 {
		return SessionTitle{Session: session}, err
	}
	return found[0], nil
}

// Holder is a session whose history includes nodes of a branch: on its active path those up to the
// generation UpTo. Later nodes are on a path that it has left. UpTo is -1 if none is active.
type Holder struct {
	Key         int64
	ID          protocol.SessionID
	Title, Cwd  string
	Archived    bool
	Child       bool // it works for another session
	Owner       bool // it wrote the nodes
	UpdatedAtMs int64
	UpTo        int64
}

// Queries for holders. Each step of holding goes to the branches that continue from a branch; what
// they share with the first one ends where the first of the steps left it.
const (
	holderColumns = `
s.session, s.session_id, s.title, s.cwd, s.archived, s.parent IS NOT NULL, s.updated_at`
	activeHolders = `
WITH RECURSIVE holding (branch, session, up_to) AS (
  SELECT branch, session, NULL FROM branches WHERE branch = ?
  UNION ALL
  SELECT b.branch, b.session, coalesce(h.up_to, b.parent_generation)
  FROM holding h JOIN branches b ON b.parent_branch = h.branch AND b.branch > h.branch
)
SELECT` + holderColumns + `, coalesce(h.up_to, s.generation)
FROM holding h JOIN sessions s ON s.session = h.session AND s.branch = h.branch
ORDER BY s.session DESC`
	branchOwner = `
SELECT` + holderColumns + `, iif(s.branch = b.branch, s.generation, -1)
FROM branches b JOIN sessions s ON s.session = b.session
WHERE b.branch = ?`
	oneHolder = `
SELECT` + holderColumns + `, -1
FROM sessions s
WHERE s.session = ?`
	continued = `
SELECT count(*)
FROM (SELECT 1 FROM branches WHERE parent_branch = ? LIMIT 1)`
)

func scanHolder(rows *sql.Rows, h *Holder) error {
	return rows.Scan(&h.Key, &h.ID, &h.Title, &h.Cwd, &h.Archived, &h.Child, &h.UpdatedAtMs, &h.UpTo)
}

// Holders returns the sessions whose history includes nodes of a branch: the session that wrote
// them first, then its forks, newest first. It reads no checksums, since a list shows damaged
// sessions too.
func (s *SearchReader) Holders(ctx context.Context, branch int64) ([]Holder, error) {
	all, err := list(ctx, s.pool, scanHolder, branchOwner, branch)
	if err != nil {
		return nil, err
	}
	var forks int
	if err := s.pool.row(ctx, continued, []any{branch}, &forks); err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Owner = true
	}
	if forks == 0 {
		return all, nil
	}
	active, err := list(ctx, s.pool, scanHolder, activeHolders, branch)
	for _, h := range active {
		if len(all) > 0 && h.Key == all[0].Key {
			all[0].UpTo = max(all[0].UpTo, h.UpTo)
			continue
		}
		all = append(all, h)
	}
	return all, err
}

// SessionHolder returns a session as a holder of no nodes, or ErrNotFound.
func (s *SearchReader) SessionHolder(ctx context.Context, session int64) (Holder, error) {
	found, err := list(ctx, s.pool, scanHolder, oneHolder, session)
	if err != nil {
		return Holder{}, err
	}
	if len(found) == 0 {
		return Holder{}, ErrNotFound
	}
	return found[0], nil
}

// NodeAt reads the id and the turn of the node at a generation of a branch, or fails with
// ErrNotFound.
func (s *SearchReader) NodeAt(ctx context.Context, branch, generation int64) (id protocol.NodeID, turn protocol.TurnID, atMs int64, err error) {
	err = s.pool.row(ctx, "SELECT node_id, turn_id, at FROM nodes WHERE place = ?", []any{place(branch, generation)}, &id, &turn, &atMs)
	return id, turn, atMs, err
}
