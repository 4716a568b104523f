package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"lashd/rpc/protocol"
)

const (
	smallFile = 1 << 20  // is checked after every start, as that takes a millisecond or two
	slowFile  = 64 << 20 // takes too long to check for somebody who waits for the first answer
)

const brokenHead = `
SELECT s.session_id
FROM sessions s LEFT JOIN events e ON e.place = (s.session << 32 | s.seq)
WHERE s.seq > 0 AND e.chain IS NOT s.chain
LIMIT 1`

// checkUnclean checks a database that was not closed properly before anything is read from it; of a large one only that logs end where
// their heads say, and the rest beside the first answers. One that is damaged is opened all
// the same, for reading only. What it can't see, flipped bits in a page, the chains show to Verify.
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

// checkLarge checks the structure beside the first answers, by a connection that only reads. A database that is found damaged is
// written to no more from then on.
func (s *Store) checkLarge(ctx context.Context) {
	began := time.Now()
	err := quickCheck(ctx, s.pool.db)
	if ctx.Err() != nil {
		return // the next start sees an unclean end again, or the store was closed properly
	}
	if err = s.damage(err); err != nil {
		s.log.Warn("the structure of the database could not be checked", "error", err)
		return
	}
	s.log.Info("checked the structure of the database because lashd did not stop cleanly", "took", time.Since(began).Round(time.Millisecond))
}

// checkSmall checks a small database that was closed properly, before anything is written to it. Nobody waits for that who only
// wants to hear that lashd is there. What cannot be checked is not written either.
func (w *writer) checkSmall(ctx context.Context) {
	if !w.unchecked {
		return
	}
	if err := w.damage(w.checkStructure(ctx)); err != nil {
		w.stop(fmt.Errorf("check the structure of the database: %w: %w", ErrPoisoned, err))
	}
}

func (w *writer) checkStructure(ctx context.Context) error {
	if err := quickCheck(ctx, w.stmts.conn); err != nil {
		return err
	}
	return w.checkHeads(ctx)
}

func (w *writer) checkHeads(ctx context.Context) error {
	var id protocol.SessionID
	err := w.stmts.conn.QueryRowContext(ctx, brokenHead).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return classify(err)
	}
	return fmt.Errorf("session %s: its log does not end where its head says: %w", id, ErrCorrupt)
}
