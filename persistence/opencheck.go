package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

const (
	smallFile = 1 << 20  // is checked whenever it is opened, as that takes a millisecond or two
	slowFile  = 64 << 20 // takes long enough to check that somebody may wonder
)

const brokenHead = `
SELECT s.session_id
FROM sessions s LEFT JOIN events e ON e.place = (s.session << 32 | s.seq)
WHERE s.seq > 0 AND e.chain IS NOT s.chain
LIMIT 1`

// checkStructure checks a database that was not closed properly, or is small, before anything is read from it. One that is
// damaged is opened all the same, for reading only. What it can't see, flipped bits in a page, the chains show to Verify.
func (s *Store) checkStructure(ctx context.Context, found preview) error {
	if found.size == 0 || (!found.unclean && found.size > smallFile) {
		return nil
	}
	if found.size > slowFile {
		s.cfg.Progress("checking the database, as lashd was not stopped properly")
	}
	err := quickCheck(ctx, s.stmts.conn)
	if err == nil {
		err = s.checkHeads(ctx)
	}
	if errors.Is(err, ErrCorrupt) {
		s.stop(err)
		return nil
	}
	return err
}

func (s *Store) checkHeads(ctx context.Context) error {
	var id protocol.SessionID
	err := s.stmts.conn.QueryRowContext(ctx, brokenHead).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return classify(err)
	}
	return fmt.Errorf("session %s: its log does not end where its head says: %w", id, ErrCorrupt)
}
