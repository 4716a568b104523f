package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// insertSession inserts a session without history. The chain of its log starts with 32 zero bytes.
const insertSession = `
INSERT INTO sessions (session, session_id, title, cwd, relation, parent, usage_label, config, authority, revision, branch, generation,
  leaf, frame, seq, chain, turn_index, usage, created_at, updated_at, archived)
VALUES (` + nextSession + `, ?, ?, ?, ?, (SELECT session FROM sessions WHERE session_id = ?), ?, ?, ?, 0, 0, 0, '', '', 0, zeroblob(32), ?, ?, ?, ?, 0)`

// emptyUsage is the usage of a new session.
var emptyUsage = []byte(`{}`)

// createSession inserts the session of a commit and returns its head. It fails with ErrExists if
// the id is in use, and with ErrDeleted if it belonged to a deleted session. A fork shares the
// history of its source; another session starts with an empty branch. The caller saves the head at
// the end of the commit.
func createSession(ctx context.Context, t *tx, c *change) (*head, error) {
	switch err := missingSession(ctx, t, c.Session); {
	case errors.Is(err, ErrDeleted):
		return nil, err
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	n := c.Create
	var exists int
	err := t.row(ctx, "SELECT 1 FROM sessions WHERE session_id = ?", []any{c.Session}, &exists)
	if err == nil {
		return nil, fmt.Errorf("session %s: %w", c.Session, ErrExists)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	res, err := t.run(ctx, insertSession, c.Session, n.Title, n.Cwd, c.relation, n.Relation.Parent, n.UsageLabel, c.created,
		c.authority, n.Turns, emptyUsage, c.AtMs, c.AtMs)
	if err != nil {
		return nil, err
	}
	h := &head{id: c.Session, chain: make([]byte, 32)}
	if h.session, err = res.LastInsertId(); err != nil {
		return nil, err
	}
	if c.first != nil {
		if err := t.exec(ctx, "INSERT INTO first_inputs (session, body) VALUES (?, ?)", h.session, c.first); err != nil {
			return nil, err
		}
	}
	if n.Source != nil {
		return h, forkHistory(ctx, t, h, n)
	}
	return h, newBranch(ctx, t, h, 0)
}

// pinnedPlace finds a node that a pin or a snapshot of the source session keeps reachable.
const pinnedPlace = `
SELECT place
FROM (SELECT session, node_id, place FROM pins UNION SELECT session, node_id, place FROM snapshots) JOIN sessions USING (session)
WHERE session_id = ? AND node_id = ?`

// cloneComponents copies the components of a session or, if the parameter snapshot is not empty, of
// one of its snapshots. copyBlobRefs makes the fork refer to all artifacts of its source.
const (
	cloneComponents = `
INSERT INTO components (session, snapshot, name, digest, body)
SELECT ?, '', name, digest, body FROM components WHERE session = ? AND snapshot = ?`
	copyBlobRefs = `
INSERT INTO blob_refs (session, digest)
SELECT ?, digest FROM blob_refs WHERE session = ?`
)

// takeFirst deletes the first input of a session and returns it. Only one commit can get it; later
// ones fail with ErrNotFound. Without TakeFirst it returns nil.
func takeFirst(ctx context.Context, t *tx, c *change, h *head) ([]protocol.InputPart, error) {
	if !c.TakeFirst {
		return nil, nil
	}
	var body []byte
	var first []protocol.InputPart
	err := t.row(ctx, "DELETE FROM first_inputs WHERE session = ? RETURNING body", []any{h.session}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &NotFoundError{What: "first input of session", ID: string(h.id)}
	}
	if err != nil {
		return nil, err
	}
	return first, decode(body, &first, "first input")
}
