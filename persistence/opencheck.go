package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

const (
	smallFile = 1 << 20  // is checked after every start, as that takes a millisecond or two
	slowFile  = 64 << 20 // takes long enough to check that somebody may wonder
)

const brokenHead = `
SELECT s.session_id
FROM sessions s LEFT JOIN events e ON e.place = (s.session << 32 | s.seq)
WHERE s.seq > 0 AND e.chain IS NOT s.chain
LIMIT 1`

// checkUnclean checks a database that was not closed properly before anything is read from it. One that is damaged is opened all
// the same, for reading only. What it can't see, flipped bits in a page, the chains show to Verify.
func (s *Store) checkUnclean(ctx context.Context, found preview) error {
	if !found.unclean || found.size == 0 {
		s.unchecked = found.size > 0 && found.size <= smallFile
		return nil
	}
	if found.size > slowFile {
		s.cfg.Progress("checking the database, as lashd was not stopped properly")
	}
	return s.checkStructure(ctx)
}

// checkSmall checks a small database that was closed properly, before anything is written to it. Nobody waits for that who only
// wants to hear that lashd is there. What cannot be checked is not written either.
func (s *Store) checkSmall(ctx context.Context) {
	if !s.unchecked {
		return
	}
	s.unchecked = false
	if err := s.checkStructure(ctx); err != nil {
		s.stop(fmt.Errorf("check the structure of the database: %w: %w", ErrPoisoned, err))
	}
}

// checkStructure has a damaged database written to no more.
func (s *Store) checkStructure(ctx context.Context) error {
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
