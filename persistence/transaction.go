package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// transact writes a group in one transaction. A returned error failed the whole group. A request
// that fails for its own reason has it in err, and only its savepoint is rolled back.
func (w *writer) transact(ctx context.Context, group []*request) error {
	if err := w.stopped(); err != nil {
		return err
	}
	w.heads.begin()
	tx := &tx{stmts: w.stmts, blobs: w.blobs, heads: &w.heads}
	// The group must not depend on one client's context, and a deadline would only turn a slow commit into one with an
	// unknown outcome. If another process holds the lock, BEGIN waits up to busyTimeout. Later statements never wait.
	ctx = context.WithoutCancel(ctx)
	if err := tx.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return w.failed(err)
	}
	written := 0
	for _, r := range group {
		if err := w.applyOne(ctx, tx, r, len(group) > 1); err != nil {
			tx.rollback(ctx)
			return w.failed(err)
		}
		if r.err == nil && !r.result.Replayed {
			written++
		}
	}
	if written == 0 {
		tx.rollback(ctx)
		return nil
	}
	if err := w.failed(tx.exec(ctx, "COMMIT")); err != nil {
		if !errors.Is(err, ErrPoisoned) {
			tx.rollback(ctx)
		}
		return err
	}
	w.witness.logged()
	if err := w.checkFiles(ctx); err != nil { // report no commit that the next process may not find
		return err
	}
	w.heads.committed()
	w.uncounted += int64(written)
	w.dropFiles(ctx, tx.dropped)
	w.changes.add(tx.touched)
	return nil
}

// applyOne applies one request within the transaction. If the request itself is wrong, its err says
// so. A returned error means that the database failed, which fails the whole group. shared says
// that the group has other requests, so this one needs a savepoint.
func (w *writer) applyOne(ctx context.Context, tx *tx, r *request, shared bool) error {
	r.result, r.err = Result{}, nil
	if w.ballast.released.Load() && r.change.begins() {
		r.err = fmt.Errorf("start new work: %w", ErrFull)
		return nil
	}
	if shared {
		if err := tx.exec(ctx, "SAVEPOINT one"); err != nil {
			return err
		}
	}
	dropped := len(tx.dropped)
	result, err := apply(ctx, tx, r.change)
	if isStorage(err) {
		return err
	}
	if err == nil {
		r.result = result
	} else {
		r.err = classify(err)
		tx.dropped = tx.dropped[:dropped]
	}
	if !shared {
		return nil
	}
	if err != nil {
		if err := tx.exec(ctx, "ROLLBACK TO one"); err != nil {
			return err
		}
	}
	return tx.exec(ctx, "RELEASE one")
}

// isStorage reports whether err is a failure of the database rather than of one commit. A row that
// does not decode concerns only the commit that needs it.
func isStorage(err error) bool {
	err = classify(err)
	return errors.Is(err, ErrFull) || errors.Is(err, ErrBusy) || errors.Is(err, ErrPoisoned) || errors.Is(err, errDamaged)
}

// dropFiles removes the files of blobs whose rows were deleted. It checks again that no row exists,
// because a later commit of the same group may have inserted one.
func (w *writer) dropFiles(ctx context.Context, dropped []protocol.Digest) {
	for _, d := range dropped {
		used, err := w.hasBlob(ctx, d)
		if err == nil && !used {
			err = w.blobs.remove(d)
		}
		if err != nil { // the sweep tries again
			w.log.Warn("file of a deleted blob not removed", "digest", d, "error", err)
		}
	}
}

// hasBlob reports whether a blob has a row. It reads with the writer's connection, so the answer
// holds until the next commit.
func (w *writer) hasBlob(ctx context.Context, d protocol.Digest) (bool, error) {
	tx := &tx{stmts: w.stmts}
	var n int
	err := tx.row(ctx, "SELECT 1 FROM blobs WHERE digest = ?", []any{d}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, w.failed(err)
}

// tx is the writer's open transaction. All statements go through it, so that they are prepared once
// and maintain the checksums of rows. Not safe for concurrent use.
type tx struct {
	stmts   *statements
	blobs   *blobFiles
	heads   *heads
	dropped []protocol.Digest // blobs whose files can be removed after COMMIT
	touched []touched         // what the commits changed, and perhaps some that were rolled back
}

// rollback ends the transaction. SQLite rolls back by itself after some errors, so the error of
// ROLLBACK is ignored.
func (t *tx) rollback(ctx context.Context) {
	_ = t.exec(ctx, "ROLLBACK")
}

// exec runs a statement that returns no rows.
func (t *tx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.run(ctx, query, args...)
	return err
}

// run is exec that also returns the driver's result, for a row number or a count.
func (t *tx) run(ctx context.Context, query string, args ...any) (sql.Result, error) {
	p, err := t.stmts.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return p.ExecContext(ctx, args...)
}

// changed runs a conditional write, and returns the error otherwise if it affected no row.
func (t *tx) changed(ctx context.Context, otherwise error, query string, args ...any) error {
	res, err := t.run(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n > 0 || err != nil {
		return err
	}
	return otherwise
}

// row scans the first row of a query into the given pointers, or fails with sql.ErrNoRows.
func (t *tx) row(ctx context.Context, query string, args []any, into ...any) error {
	p, err := t.stmts.get(ctx, query)
	if err != nil {
		return err
	}
	return p.QueryRowContext(ctx, args...).Scan(into...)
}
