package persistence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// Rollback says that commits which lashd had stored are gone. It is kept in the database until a person acknowledges it.
type Rollback struct {
	AtMs    int64  `json:"atMs"`    // when it was found
	Problem string `json:"problem"` // what is gone, in a sentence without an end
}

func (r *Rollback) Error() string {
	return r.Problem + "; it may have been restored from a copy. Run `lashd doctor` for options."
}

// Rollback is nil, or a loss of commits that nobody has acknowledged yet.
func (s *Store) Rollback() *Rollback { return s.rollback }

// Names of the facts in meta.
const (
	metaEpoch    = "epoch"
	metaBefore   = "epoch_before" // the epoch before this one
	metaOpened   = "opened"       // absent from a backup that was not opened yet
	metaRollback = "rollback"     // a Rollback that was not acknowledged
	metaCommits  = "commits"
	metaStore    = "store_id"
	metaSecret   = "secret"
)

// loadFacts reads what the database says of itself.
func (s *Store) loadFacts(ctx context.Context, db queryer) error {
	rows, err := db.QueryContext(ctx, "SELECT name, value FROM meta")
	if err != nil {
		return classify(err)
	}
	type pair struct{ name, value string }
	pairs, err := collect(rows, func(rows *sql.Rows, p *pair) error { return rows.Scan(&p.name, &p.value) })
	if err != nil {
		return err
	}
	s.backup = true
	for _, p := range pairs {
		if err := s.setFact(p.name, p.value); err != nil {
			return fmt.Errorf("meta %s is %q: %w", p.name, p.value, ErrCorrupt)
		}
	}
	return nil
}

func (s *Store) setFact(name, value string) (err error) {
	switch name {
	case metaStore:
		s.facts.StoreID = value
	case metaSecret:
		s.facts.Secret = value
	case metaOpened:
		s.backup = false
	case metaRollback:
		s.rollback = &Rollback{}
		err = json.Unmarshal([]byte(value), s.rollback)
	case metaEpoch:
		s.facts.Epoch, err = strconv.ParseInt(value, 10, 64)
	case metaBefore:
		s.before, err = strconv.ParseInt(value, 10, 64)
	case metaCommits:
		s.commits, err = strconv.ParseInt(value, 10, 64)
	}
	return err
}

// present is the database as it was found when nothing had been written yet.
func (s *Store) present(there remains) present {
	return present{
		storeID: s.facts.StoreID, epoch: s.facts.Epoch, before: s.before, commits: s.commits, backup: s.backup,
		file: there.file, log: there.log,
	}
}

const anySession = `SELECT EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM deleted_sessions)`

// settleEpoch compares the database with what was seen of it. A copy, and a database that lost commits, gets a new epoch, so that
// a client's cursor is answered with a gap instead of other events. One that has lost all is refused.
func (s *Store) settleEpoch(ctx context.Context, there remains, created bool) error {
	how, why := continues, ""
	if !created {
		how, why = there.seen.judge(s.present(there), bootID())
	}
	if how == rolled {
		if err := checkEmptied(ctx, s.stmts.conn, there, why); err != nil {
			return err
		}
	}
	var err error
	if s.witness, err = openWitness(filepath.Join(s.cfg.Dir, witnessName)); err != nil {
		return err
	}
	if how == continues {
		return s.noteFiles(created)
	}
	return s.beginEpoch(ctx, how, why)
}

// checkEmptied refuses a database that lost commits and has no session: whoever used it would take it for a new one.
func checkEmptied(ctx context.Context, db queryer, there remains, why string) error {
	var any bool
	if err := db.QueryRowContext(ctx, anySession).Scan(&any); err != nil {
		return classify(err)
	}
	if !any {
		return there.missing(why + ", and has no sessions at all; the data is missing")
	}
	return nil
}

// beginEpoch gives the store a new epoch. In one that is found damaged, nothing is written, and the next start finds the same again.
func (s *Store) beginEpoch(ctx context.Context, how continuity, why string) error {
	before := s.facts.Epoch
	s.facts.Epoch = newEpoch()
	if how == rolled {
		s.rollback = &Rollback{AtMs: time.Now().UnixMilli(), Problem: why}
		s.cfg.Log.Error(s.rollback.Error(), "epoch", s.facts.Epoch)
	} else {
		s.cfg.Log.Info("the database is a copy; clients read their sessions again", "reason", why, "epoch", s.facts.Epoch)
	}
	s.checkSmall(ctx)
	if s.stopped() != nil {
		return nil
	}
	s.before, s.backup = before, false
	if err := s.inTransaction(ctx, func(tx *sql.Tx) error { return s.storeEpoch(ctx, tx) }); err != nil {
		return err
	}
	return s.noteFiles(true)
}

func (s *Store) storeEpoch(ctx context.Context, tx *sql.Tx) error {
	put, err := summed(putFact)
	if err != nil {
		return err
	}
	facts := map[string]string{metaOpened: "1", metaEpoch: strconv.FormatInt(s.facts.Epoch, 10), metaBefore: strconv.FormatInt(s.before, 10)}
	if s.rollback != nil {
		data, err := json.Marshal(s.rollback)
		if err != nil {
			return err
		}
		facts[metaRollback] = string(data)
	}
	for name, value := range facts {
		if _, err := tx.ExecContext(ctx, put, name, value); err != nil {
			return err
		}
	}
	return nil
}

const putFact = `
INSERT INTO meta (name, value)
VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`

// noteFiles has the witness know which files are in use. That need not survive a loss of power unless the store is new to it.
func (s *Store) noteFiles(fresh bool) error {
	file, err := stampOf(s.path)
	if err != nil {
		return err
	}
	log, err := stampIfThere(s.path + "-wal")
	if err != nil {
		return err
	}
	if seen := s.witness.last; seen.Log == log.identity && seen.Epoch == s.facts.Epoch { // then the file is that one, too
		return nil
	}
	s.saveWitness(fresh, func(w *witnessed) {
		if fresh {
			*w = witnessed{}
		}
		w.StoreID, w.Epoch, w.Commits = s.facts.StoreID, s.facts.Epoch, s.commits
		w.File, w.Log = file.identity, log.identity
	})
	return nil
}

// markBackup has the first Open of a copy begin a new epoch.
func markBackup(ctx context.Context, path string) error {
	db, err := openCopy(path, "rw")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DELETE FROM meta WHERE name = ?", metaOpened) // which needs no sum, and so suits every schema
	return errors.Join(classify(err), db.Close())
}
