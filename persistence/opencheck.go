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
func (s *Store) checkUnclean(ctx context.Context, found preview) error {
	if !found.unclean || found.size == 0 {
		s.unchecked = found.size > 0 && found.size <= smallFile
		return nil
	}
	check := s.checkStructure
	if found.size > slowFile {
		s.uncheckedLarge, check = true, s.checkHeads
	}
	return s.damage(check(ctx))
}

// checkLarge checks the structure beside the first answers, by a connection that only reads. A database that is found damaged is
// written to no more from then on.
func (s *Store) checkLarge(ctx context.Context) {
	began := time.Now()
	err := quickCheck(ctx, s.read.db)
	if ctx.Err() != nil {
		return // the next start sees an unclean end again, or the store was closed properly
	}
	if err = s.damage(err); err != nil {
		s.cfg.Log.Warn("the structure of the database could not be checked", "error", err)
		return
	}
	s.cfg.Log.Info("checked the structure of the database, as lashd was not stopped properly", "took", time.Since(began).Round(time.Millisecond))
}

// checkSmall checks a small database that was closed properly, before anything is written to it. Nobody waits for that who only
// wants to hear that lashd is there. What cannot be checked is not written either.
func (s *Store) checkSmall(ctx context.Context) {
	if !s.unchecked {
		return
	}
	if err := s.damage(s.checkStructure(ctx)); err != nil {
		s.stop(fmt.Errorf("check the structure of the database: %w: %w", ErrPoisoned, err))
	}
}

func (s *Store) checkStructure(ctx context.Context) error {
	if err := quickCheck(ctx, s.stmts.conn); err != nil {
		return err
	}
	return s.checkHeads(ctx)
}

// damage has a database that is corrupt written to no more. It returns other errors.
func (s *Store) damage(err error) error {
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
