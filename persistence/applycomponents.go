package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// insertBlob and insertBlobRef do nothing if the row exists: equal content is stored once.
const (
	insertBlob = `
INSERT INTO blobs (digest, size, body)
VALUES (?, ?, ?)
ON CONFLICT (digest) DO NOTHING`
	insertBlobRef = `
INSERT INTO blob_refs (session, digest)
VALUES (?, ?)
ON CONFLICT (session, digest) DO NOTHING`
)

// applyBlobs stores the commit's blobs and records that the session refers to them.
func applyBlobs(ctx context.Context, t *tx, c *change, h *head) error {
	for _, b := range c.Blobs {
		err := putBlob(ctx, t, b)
		if err == nil {
			err = t.exec(ctx, insertBlobRef, h.session, b.Digest)
		}
		if err != nil {
			return fmt.Errorf("blob %s: %w", b.Digest, err)
		}
	}
	return nil
}

// putBlob inserts the row of a blob unless it exists. If the content is in a file, the file must
// already be there with the right size; otherwise putBlob fails with ErrNotFound.
func putBlob(ctx context.Context, t *tx, b Blob) error {
	res, err := t.run(ctx, insertBlob, b.Digest, b.Size, b.Body)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 1 && b.Body == nil && !t.blobs.has(b.Digest, b.Size) {
		return fmt.Errorf("its file is missing: %w", ErrNotFound)
	}
	return err
}

// inlineComponent is the largest component, in bytes, that is stored in its own row. A larger one
// is stored as a blob. Upstream measured the break-even at 272 bytes.
const inlineComponent = 512

// Statements for the current components of a session (snapshot ”). body is NULL if the content is
// a blob.
const (
	selectComponent = `
SELECT digest, body IS NULL
FROM components
WHERE session = ? AND snapshot = '' AND name = ?`
	upsertComponent = `
INSERT INTO components (session, snapshot, name, digest, body)
VALUES (?, '', ?, ?, ?)
ON CONFLICT (session, snapshot, name) DO UPDATE
SET digest = excluded.digest, body = excluded.body`
	deleteComponent = `
DELETE FROM components
WHERE session = ? AND snapshot = '' AND name = ?`
)

// applyComponents stores the commit's components in order.
func applyComponents(ctx context.Context, t *tx, c *change, h *head) error {
	for _, k := range c.Component {
		if err := applyComponent(ctx, t, h, k); err != nil {
			return fmt.Errorf("component %s: %w", k.Name, err)
		}
	}
	return nil
}

// applyComponent stores, replaces or removes one component. It writes nothing if the digest is
// unchanged. A blob that only the old value used is removed.
func applyComponent(ctx context.Context, t *tx, h *head, k Component) error {
	var old protocol.Digest
	var oldInBlob bool
	err := t.row(ctx, selectComponent, []any{h.session, k.Name}, &old, &oldInBlob)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	digest, body := protocol.DigestOf(k.Body), k.Body
	switch {
	case k.Body == nil:
		err = t.exec(ctx, deleteComponent, h.session, k.Name)
	case digest == old:
		return nil
	default:
		if len(body) > inlineComponent {
			if err := putBlob(ctx, t, Blob{Digest: digest, Size: int64(len(body)), Body: body}); err != nil {
				return err
			}
			body = nil
		}
		err = t.exec(ctx, upsertComponent, h.session, k.Name, digest, body)
	}
	if err == nil && oldInBlob {
		err = dropBlob(ctx, t, old)
	}
	return err
}

// deleteUnusedBlob deletes a blob that no session and no component refers to, and returns whether
// its content is in a file.
const deleteUnusedBlob = `
DELETE FROM blobs
WHERE digest = ?
  AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.digest = blobs.digest)
  AND NOT EXISTS (SELECT 1 FROM components c WHERE c.digest = blobs.digest AND c.body IS NULL)
RETURNING body IS NULL`

// dropBlob removes the row of a blob if nothing refers to it, and schedules its file for removal
// after COMMIT.
func dropBlob(ctx context.Context, t *tx, d protocol.Digest) error {
	var inFile bool
	err := t.row(ctx, deleteUnusedBlob, []any{d}, &inFile)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && inFile {
		t.dropped = append(t.dropped, d)
	}
	return err
}
