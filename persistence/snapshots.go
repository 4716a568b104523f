package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// Snapshot is a named state of a session.
type Snapshot struct {
	Name string
	Node protocol.NodeID // the leaf
	AtMs int64
	// Generation is that of the leaf. Bytes is the size of the snapshot's components. Only reads
	// set them.
	Generation, Bytes int64
}

// applySnapshots saves and drops snapshots. It runs after the session's other rows are written,
// because a snapshot contains the state that the commit leaves.
func applySnapshots(ctx context.Context, t *tx, c *change, h *head) error {
	if c.Save != "" {
		if err := saveSnapshot(ctx, t, c, h); err != nil {
			return fmt.Errorf("snapshot %q: %w", c.Save, err)
		}
	}
	if c.Drop != "" {
		return dropSnapshot(ctx, t, c, h)
	}
	return nil
}

const (
	insertSnapshot = `
INSERT INTO snapshots (session, name, node_id, place, at)
SELECT ?, ?, node_id, place, ?
FROM nodes
WHERE node_id = ?
ON CONFLICT (session, name) DO NOTHING`
	// Copies a component and its parts from one state of the session to another; '' is the current state.
	copyState = `
INSERT INTO components (session, snapshot, name, digest, body)
SELECT session, ?, name, digest, body
FROM components
WHERE session = ? AND snapshot = ? AND (name = ? OR name BETWEEN ? || '/' AND ? || '/~')`
)

// saveSnapshot stores the leaf and the components of Keep. A name that exists is ErrExists.
func saveSnapshot(ctx context.Context, t *tx, c *change, h *head) error {
	err := t.changed(ctx, ErrExists, insertSnapshot, h.session, c.Save, c.AtMs, h.leaf)
	for _, name := range c.Keep {
		if err == nil {
			err = t.exec(ctx, copyState, c.Save, h.session, "", name, name, name)
		}
	}
	return err
}

// snapshotPlace finds the node of a snapshot.
const snapshotPlace = `
SELECT node_id, place
FROM snapshots
WHERE session = ? AND name = ?`

// restoreSnapshot opens a new branch at the snapshot's node, as a rewind does, and replaces the
// components of Keep. It works even if the node is no longer on the session's path. The snapshot
// stays.
func restoreSnapshot(ctx context.Context, t *tx, c *change, h *head) error {
	var at int64
	err := t.row(ctx, snapshotPlace, []any{h.session, c.Restore}, &h.leaf, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return &NotFoundError{What: "snapshot", ID: c.Restore}
	}
	if err != nil {
		return err
	}
	if err := newBranch(ctx, t, h, at); err != nil {
		return err
	}
	h.generation, h.moved = at&0xffffffff, true
	if err := t.row(ctx, "SELECT frame FROM nodes WHERE place = ?", []any{at}, &h.frame); err != nil {
		return err
	}
	return restoreState(ctx, t, c, h)
}

// restoreState replaces each component of Keep, with its parts, by the one in the snapshot. A
// component that the snapshot lacks is removed.
func restoreState(ctx context.Context, t *tx, c *change, h *head) error {
	var old []protocol.Digest
	for _, name := range c.Keep {
		gone, err := removeState(ctx, t, h, "", name)
		if err != nil {
			return err
		}
		old = append(old, gone...)
		if err := t.exec(ctx, copyState, "", h.session, c.Restore, name, name, name); err != nil {
			return err
		}
	}
	return dropBlobs(ctx, t, old)
}

// deleteState deletes a component with its parts. Parts sort between name/ and name/~.
const deleteState = `
DELETE FROM components
WHERE session = ? AND snapshot = ? AND (name = ? OR name BETWEEN ? || '/' AND ? || '/~')
RETURNING digest`

// removeState deletes a component with its parts, and returns the digests of blobs that may be
// unused now.
func removeState(ctx context.Context, t *tx, h *head, snapshot, name string) ([]protocol.Digest, error) {
	return column[protocol.Digest](ctx, t, deleteState, h.session, snapshot, name, name, name)
}

const deleteSnapshotState = `
DELETE FROM components
WHERE session = ? AND snapshot = ?
RETURNING digest`

// dropSnapshot deletes a snapshot with its components.
func dropSnapshot(ctx context.Context, t *tx, c *change, h *head) error {
	err := t.changed(ctx, &NotFoundError{What: "snapshot", ID: c.Drop},
		"DELETE FROM snapshots WHERE session = ? AND name = ?", h.session, c.Drop)
	if err != nil {
		return err
	}
	old, err := column[protocol.Digest](ctx, t, deleteSnapshotState, h.session, c.Drop)
	if err != nil {
		return err
	}
	return dropBlobs(ctx, t, old)
}

// dropBlobs calls dropBlob for each digest.
func dropBlobs(ctx context.Context, t *tx, all []protocol.Digest) error {
	for _, d := range all {
		if err := dropBlob(ctx, t, d); err != nil {
			return err
		}
	}
	return nil
}

// selectSnapshots reads one snapshot, or all if the name is empty, with the size of their
// components.
const selectSnapshots = `
SELECT s.name, s.node_id, s.at, s.place & 0xffffffff, coalesce(sum(coalesce(length(c.body), b.size)), 0)
FROM snapshots s
LEFT JOIN components c ON c.session = s.session AND c.snapshot = s.name
LEFT JOIN blobs b ON c.body IS NULL AND b.digest = c.digest
WHERE s.session = ? AND (? = '' OR s.name = ?)
GROUP BY s.name
ORDER BY s.name`

// snapshots reads the snapshot of this name, or all if name is empty.
func (r *Reader) snapshots(ctx context.Context, session int64, name string) ([]Snapshot, error) {
	scan := func(rows *sql.Rows, s *Snapshot) error {
		return rows.Scan(&s.Name, &s.Node, &s.AtMs, &s.Generation, &s.Bytes)
	}
	return list(ctx, r.pool, scan, selectSnapshots, session, name, name)
}

// Snapshots lists a session's snapshots by name.
func (r *Reader) Snapshots(ctx context.Context, session int64) ([]Snapshot, error) {
	return r.snapshots(ctx, session, "")
}

// Snapshot reads one snapshot of a session, or fails with ErrNotFound.
func (r *Reader) Snapshot(ctx context.Context, session int64, name string) (Snapshot, error) {
	found, err := r.snapshots(ctx, session, name)
	if err != nil {
		return Snapshot{}, err
	}
	if name == "" || len(found) == 0 {
		return Snapshot{}, &NotFoundError{What: "snapshot", ID: name}
	}
	return found[0], nil
}
