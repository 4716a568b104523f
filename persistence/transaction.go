package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// transact writes a group in one transaction. Its error is the whole group's; a request that fails by its own fault has
// it in err, and is undone alone.
func (w *writer) transact(ctx context.Context, group []*request) error {
	if err := w.stopped(); err != nil {
		return err
	}
	w.heads.begin()
	tx := &tx{stmts: w.stmts, blobs: w.blobs, heads: &w.heads}
	// A client that goes away must not interrupt what others wait for, and a deadline could only turn a slow commit into one
	// of unknown outcome. Another process that holds the lock is waited for until busyTimeout, here and nowhere later.
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
	if err := w.checkFiles(ctx); err != nil { // nobody is told of a commit that the next process may not find
		return err
	}
	w.heads.committed()
	w.uncounted += int64(written)
	w.dropFiles(ctx, tx.dropped)
	return nil
}

// applyOne applies one request. Its own failure is its answer; a failure of the database is the group's.
func (w *writer) applyOne(ctx context.Context, tx *tx, r *request, shared bool) error {
	r.result, r.err = Result{}, nil
	if w.ballast.away.Load() && r.change.begins() {
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

// isStorage tells whether the database failed rather than the commit. A row that does not decode is the commit's matter.
func isStorage(err error) bool {
	err = classify(err)
	return errors.Is(err, ErrFull) || errors.Is(err, ErrBusy) || errors.Is(err, ErrPoisoned) || errors.Is(err, errDamaged)
}

// dropFiles removes the files of blobs whose rows are gone for good. A later commit of the same group may have brought a
// row back.
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

// hasBlob asks the writer's connection, so that the answer holds until the next commit.
func (w *writer) hasBlob(ctx context.Context, d protocol.Digest) (bool, error) {
	tx := &tx{stmts: w.stmts}
	var n int
	err := tx.row(ctx, "SELECT 1 FROM blobs WHERE digest = ?", []any{d}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, w.failed(err)
}

// tx is the open transaction of the writer.
type tx struct {
	stmts   *statements
	blobs   *blobFiles
	heads   *heads
	dropped []protocol.Digest // files to remove after COMMIT
}

// rollback ends the transaction. After some errors SQLite has done so by itself, which is why its error says nothing.
func (t *tx) rollback(ctx context.Context) {
	_ = t.exec(ctx, "ROLLBACK")
}

func (t *tx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.run(ctx, query, args...)
	return err
}

func (t *tx) run(ctx context.Context, query string, args ...any) (sql.Result, error) {
	p, err := t.stmts.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return p.ExecContext(ctx, args...)
}

// changed runs a conditional write, and fails with a reason if it matched nothing.
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

// row reads one row, or fails with sql.ErrNoRows.
func (t *tx) row(ctx context.Context, query string, args []any, into ...any) error {
	p, err := t.stmts.get(ctx, query)
	if err != nil {
		return err
	}
	return p.QueryRowContext(ctx, args...).Scan(into...)
}
