package persistence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// witness is a small file beside the database which says how many commits there were: if the database's log lost its
// tail, the database alone could not tell. The database counts its commits within a second, in a commit of its own, and the
// witness is written after that: it may be behind, but it is never ahead of a store that lost nothing.
type witness struct {
	file *os.File
}

type witnessed struct {
	StoreID string `json:"storeId"`
	Epoch   int64  `json:"epoch"`
	Commits int64  `json:"commits"`
}

// witnessSize lies within a disk sector, so that a write in place lands whole or not at all.
const witnessSize = 256

func openWitness(path string) (*witness, witnessed, error) {
	var seen witnessed
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, seen, err
	}
	data, err := io.ReadAll(io.LimitReader(f, witnessSize))
	if err != nil {
		return nil, seen, errors.Join(err, f.Close())
	}
	if json.Unmarshal(data, &seen) != nil {
		seen = witnessed{} // new, or torn by a crash: it tells nothing
	}
	return &witness{file: f}, seen, nil
}

// save writes in place, as on a full disk there may be no room for another file.
func (w *witness) save(now witnessed) error {
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if _, err := w.file.WriteAt(fmt.Appendf(nil, "%-*s\n", witnessSize-1, data), 0); err != nil {
		return err
	}
	return w.file.Sync()
}

func (w *witness) close() error {
	if w == nil {
		return nil
	}
	return w.file.Close()
}

// count has the database count what was committed since it last did, and then tells the witness.
func (s *Store) count(ctx context.Context) {
	tx := &tx{stmts: s.stmts}
	if s.uncounted > 0 {
		err := s.failed(tx.exec(ctx, "UPDATE meta SET value = CAST(CAST(value AS INTEGER) + ? AS TEXT) WHERE name = 'commits'", s.uncounted))
		if err != nil { // tried again later
			s.cfg.Log.Warn("commits not counted", "error", err)
			return
		}
		s.commits += s.uncounted
		s.uncounted = 0
	}
	s.saveWitness()
}

func (s *Store) saveWitness() {
	err := s.witness.save(witnessed{s.facts.StoreID, s.facts.Epoch, s.commits})
	if err != nil { // a witness that stays behind only sees less
		s.cfg.Log.Warn("witness not written", "error", err)
	}
}

func (s *Store) loadFacts(ctx context.Context) error {
	rows, err := s.stmts.conn.QueryContext(ctx, "SELECT name, value FROM meta")
	if err != nil {
		return classify(err)
	}
	type pair struct{ name, value string }
	pairs, err := collect(rows, func(rows *sql.Rows, p *pair) error { return rows.Scan(&p.name, &p.value) })
	if err != nil {
		return err
	}
	for _, p := range pairs {
		switch p.name {
		case "store_id":
			s.facts.StoreID = p.value
			continue
		case "secret":
			s.facts.Secret = p.value
			continue
		}
		n, err := strconv.ParseInt(p.value, 10, 64)
		if err != nil {
			return fmt.Errorf("meta %s is %q: %w", p.name, p.value, ErrCorrupt)
		}
		switch p.name {
		case "epoch":
			s.facts.Epoch = n
		case "commits":
			s.commits = n
		}
	}
	return nil
}

// checkWitness compares the database with what was seen of it. If commits are missing, the store gets a new epoch, so
// that a client's cursor from the lost time is answered with a gap instead of wrong events.
func (s *Store) checkWitness(ctx context.Context) error {
	var seen witnessed
	var err error
	if s.witness, seen, err = openWitness(filepath.Join(s.cfg.Dir, "lashd.witness")); err != nil {
		return err
	}
	if seen.StoreID != s.facts.StoreID || !seen.after(s.facts.Epoch, s.commits) {
		return nil
	}
	s.facts.Epoch = seen.Epoch + 1
	s.cfg.Log.Error("the database lost commits that were seen before; clients will read their sessions again",
		"commits", s.commits, "seen", seen.Commits, "epoch", s.facts.Epoch)
	s.checkSmall(ctx)
	if s.stopped() != nil {
		return nil // found damaged: nothing is written, and the next start sees the loss again
	}
	tx := &tx{stmts: s.stmts}
	if err := tx.exec(ctx, "UPDATE meta SET value = CAST(? AS TEXT) WHERE name = 'epoch'", s.facts.Epoch); err != nil {
		return classify(err)
	}
	s.saveWitness()
	return nil
}

// after tells whether the witness saw a later time than the database knows.
func (w witnessed) after(epoch, commits int64) bool {
	return w.Epoch > epoch || (w.Epoch == epoch && w.Commits > commits)
}
