package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"lashd/rpc/protocol"
)

// Sizes in bytes that decide when the structure of a database is checked.
const (
	smallFile = 1 << 20  // up to this size it is checked at every start; that takes one or two milliseconds
	slowFile  = 64 << 20 // above this size it is checked in the background, because clients wait for the first result
)

// brokenHead finds a session whose newest event does not have the hash that its row names.
const brokenHead = `
SELECT s.session_id
FROM sessions s LEFT JOIN events e ON e.place = (s.session << 32 | s.seq)
WHERE s.seq > 0 AND e.chain IS NOT s.chain
LIMIT 1`

// checkUnclean checks a database that was not closed properly, before anything reads from it. Of a
// large one it checks only that each log ends where its session's row says; checkLarge does the
// rest. A damaged database is still opened, for reading only. Flipped bits inside a page are found
// by Verify.
func (w *writer) checkUnclean(ctx context.Context, found preview) error {
	if !found.unclean || found.size == 0 {
		w.unchecked = found.size > 0 && found.size <= smallFile
		return nil
	}
	check := w.checkStructure
	if found.size > slowFile {
		w.uncheckedLarge, check = true, w.checkHeads
	}
	return w.damage(check(ctx))
}

// checkLarge checks the structure in the background with a read connection. If the database is
// damaged, the store stops writing.
func (s *Store) checkLarge(ctx context.Context) {
	began := time.Now()
	err := quickCheck(ctx, s.pool.db)
	if ctx.Err() != nil {
		return // the next start checks again, unless the store is closed properly
	}
	if err = s.damage(err); err != nil {
		s.log.Warn("the structure of the database could not be checked", "error", err)
		return
	}
	s.log.Info("checked the structure of the database because lashd did not stop cleanly", "took", time.Since(began).Round(time.Millisecond))
}

// checkSmall checks a small database that was closed properly, before the first write. It runs
// after Open so that clients learn sooner that the daemon is up. If the check itself fails, the
// store does not write either.
func (w *writer) checkSmall(ctx context.Context) {
	if !w.unchecked {
		return
	}
	if err := w.damage(w.checkStructure(ctx)); err != nil {
		w.stop(fmt.Errorf("check the structure of the database: %w: %w", ErrPoisoned, err))
	}
}

// checkStructure checks the structure of the database and the end of each session's log.
func (w *writer) checkStructure(ctx context.Context) error {
	if err := quickCheck(ctx, w.stmts.conn); err != nil {
		return err
	}
	return w.checkHeads(ctx)
}

// checkHeads checks that the log of each session ends with the event that its row names.
func (w *writer) checkHeads(ctx context.Context) error {
	var id protocol.SessionID
	err := w.stmts.conn.QueryRowContext(ctx, brokenHead).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return classify(err)
	}
	return fmt.Errorf("session %s: the newest event of its log does not match its head: %w", id, ErrCorrupt)
}
