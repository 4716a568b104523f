package persistence

import (
	"context"
	"database/sql"
	"errors"

	"lashd/rpc/protocol"
)

// blobsOfSession finds every blob that the session may be the last one to use.
const (
	blobsOfSession = `
SELECT digest FROM blob_refs WHERE session = ?1
UNION
SELECT digest FROM components WHERE session = ?1 AND body IS NULL`
	branchesOfSession = `SELECT branch FROM branches WHERE session = ?`
)

// Statements that pass the usage of a deleted session to its parent, now and in the future. The
// deleted session's children become children of that parent.
const (
	moveUsageToParent = `
UPDATE usage
SET session = s.parent, source = s.usage_label
FROM sessions s
WHERE usage.session = ?1 AND s.session = ?1 AND s.parent IS NOT NULL`
	moveChildrenToParent = `
UPDATE sessions
SET parent = s.parent, usage_label = iif(s.parent IS NULL, sessions.usage_label, s.usage_label)
FROM sessions s
WHERE sessions.parent = ?1 AND s.session = ?1`
)

// deleteSession removes a session and everything that only it owns. Its id is never used again. Its
// receipts stay for keepReceipts without their results, so that a repeated request fails with
// ErrDeleted.
//
// Events have no foreign key, since their key contains the session's number, and are deleted by
// range. Branches stay as long as a fork continues from them.
func deleteSession(ctx context.Context, t *tx, h *head, atMs int64) error {
	blobs, err := column[protocol.Digest](ctx, t, blobsOfSession, h.session)
	if err != nil {
		return err
	}
	branches, err := column[int64](ctx, t, branchesOfSession, h.session)
	if err != nil {
		return err
	}
	steps := []struct {
		query string
		args  []any
	}{
		{"INSERT INTO deleted_sessions (session_id, deleted_at) VALUES (?, ?)", []any{h.id, atMs}},
		{"DELETE FROM events WHERE place BETWEEN ? AND ?", []any{place(h.session, 0), place(h.session+1, 0) - 1}},
		{"UPDATE branches SET session = NULL WHERE session = ?", []any{h.session}},
		{moveUsageToParent, []any{h.session}},
		{moveChildrenToParent, []any{h.session}},
		{"UPDATE receipts SET session = NULL, result = NULL, at = ? WHERE session = ?", []any{atMs, h.session}},
		{"DELETE FROM sessions WHERE session = ?", []any{h.session}}, // rows that refer to it are deleted by ON DELETE CASCADE
	}
	for _, s := range steps {
		if err := t.exec(ctx, s.query, s.args...); err != nil {
			return err
		}
	}
	if err := dropBlobs(ctx, t, blobs); err != nil {
		return err
	}
	for _, b := range branches {
		t.touched = append(t.touched, touched{h.session, b})
		if err := reclaim(ctx, t, b); err != nil {
			return err
		}
	}
	return nil
}

// column returns the first column of all rows of a query, inside the transaction.
func column[T any](ctx context.Context, t *tx, query string, args ...any) ([]T, error) {
	p, err := t.stmts.get(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := p.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows, v *T) error { return rows.Scan(v) })
}

// Statements of reclaim. orphan finds nothing if a session owns the branch.
const (
	orphan = `
SELECT parent_branch, (SELECT max(c.parent_generation) FROM branches c WHERE c.parent_branch = b.branch)
FROM branches b
WHERE branch = ? AND session IS NULL`
	trimBranch = `DELETE FROM nodes WHERE place > ? AND place < ?`
)

// reclaim removes the nodes of a branch without a session that no session can reach: all nodes
// after the last one that another branch continues from. If no branch continues from it, reclaim
// removes the whole branch and goes on with its parent.
func reclaim(ctx context.Context, t *tx, branch int64) error {
	for {
		var parent, last sql.NullInt64
		err := t.row(ctx, orphan, []any{branch}, &parent, &last)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // a session owns it, or it is already removed
		}
		if err != nil {
			return err
		}
		keep := place(branch, 0) - 1
		if last.Valid {
			keep = place(branch, last.Int64)
		}
		if err := t.exec(ctx, trimBranch, keep, place(branch+1, 0)); err != nil || last.Valid {
			return err
		}
		if parent.Int64 >= branch {
			return wrongParent(branch, parent.Int64)
		}
		if err := t.exec(ctx, "DELETE FROM branches WHERE branch = ?", branch); err != nil || !parent.Valid {
			return err
		}
		branch = parent.Int64
		t.touched = append(t.touched, touched{0, branch})
	}
}
