package persistence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Rollback means that commits which lashd had stored are gone. The database keeps it until the user
// acknowledges it.
type Rollback struct {
	AtMs    int64  `json:"atMs"`    // when lashd found it, in milliseconds since 1970
	Problem string `json:"problem"` // what is missing, as a clause without a period
}

func (r *Rollback) Error() string {
	return r.Problem + "; it may have been restored from a copy. Run `lash doctor` for options."
}

// Names of the facts in the table meta.
const (
	metaEpoch    = "epoch"
	metaBefore   = "epoch_before" // previous epoch
	metaOpened   = "opened"       // absent from a backup that was never opened
	metaRollback = "rollback"     // a Rollback that is not acknowledged
	metaCommits  = "commits"
	metaStore    = "store_id"
	metaSecret   = "secret"
)

// meta holds the facts in the table meta. It belongs to the writer after Open.
type meta struct {
	facts    Facts
	commits  int64     // as counted in the database; the witness compares it
	before   int64     // previous epoch; 0: none
	backup   bool      // a backup that was never opened
	rollback *Rollback // a loss of commits that is not acknowledged; nil: none
}

// readMeta reads the facts of a database. A fact that cannot be parsed is ErrCorrupt; unknown ones
// are ignored.
func readMeta(ctx context.Context, db queryer) (meta, error) {
	m := meta{backup: true}
	rows, err := db.QueryContext(ctx, "SELECT name, value FROM meta")
	if err != nil {
		return m, classify(err)
	}
	type pair struct{ name, value string }
	pairs, err := collect(rows, func(rows *sql.Rows, p *pair) error { return rows.Scan(&p.name, &p.value) })
	if err != nil {
		return m, err
	}
	for _, p := range pairs {
		if err := m.setFact(p.name, p.value); err != nil {
			return m, fmt.Errorf("meta %s is %q: %w", p.name, p.value, ErrCorrupt)
		}
	}
	return m, nil
}

// setFact sets the field for one row of the table.
func (m *meta) setFact(name, value string) (err error) {
	switch name {
	case metaStore:
		m.facts.StoreID = value
	case metaSecret:
		m.facts.Secret = value
	case metaOpened:
		m.backup = false
	case metaRollback:
		m.rollback = &Rollback{}
		err = json.Unmarshal([]byte(value), m.rollback)
	case metaEpoch:
		m.facts.Epoch, err = strconv.ParseInt(value, 10, 64)
	case metaBefore:
		m.before, err = strconv.ParseInt(value, 10, 64)
	case metaCommits:
		m.commits, err = strconv.ParseInt(value, 10, 64)
	}
	return err
}

// present returns the state of the database for judge. Call it before anything is written.
func (m *meta) present(there remains) present {
	return present{
		storeID: m.facts.StoreID, epoch: m.facts.Epoch, before: m.before, commits: m.commits, backup: m.backup,
		file: there.file, log: there.log,
	}
}

// anySession is true if the database has, or had, a session.
const anySession = `SELECT EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM deleted_sessions)`

// settleEpoch compares the database with the witness. A copy, and a database that lost commits,
// gets a new epoch. A client with a cursor of the old epoch then learns that events are missing, and
// does not get unrelated events under the same numbers. A database that lost everything is rejected
// with ErrMissing. created skips the comparison for a new
// database.
func (w *writer) settleEpoch(ctx context.Context, there remains, created bool) error {
	how, why := continues, ""
	if !created {
		how, why = there.seen.judge(w.meta.present(there), bootID())
	}
	if how == rolledBack {
		if err := checkEmptied(ctx, w.stmts.conn, there, why); err != nil {
			return err
		}
	}
	var err error
	if w.witness, err = openWitness(w.path, w.log); err != nil {
		return err
	}
	if how == continues {
		return w.witness.noteFiles(&w.meta, created)
	}
	return w.beginEpoch(ctx, how, why)
}

// checkEmptied rejects a database that lost commits and has no session. The user would mistake it
// for a new one.
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

// beginEpoch gives the store a new epoch, and records a rollback if commits are gone. It writes
// nothing to a database that turns out to be damaged; the next start then finds the same situation.
func (w *writer) beginEpoch(ctx context.Context, how continuity, why string) error {
	before := w.meta.facts.Epoch
	w.meta.facts.Epoch = newEpoch()
	if how == rolledBack {
		w.meta.rollback = &Rollback{AtMs: time.Now().UnixMilli(), Problem: why}
		w.log.Error(w.meta.rollback.Error(), "epoch", w.meta.facts.Epoch)
	} else {
		w.log.Info("the database is a copy; clients must read their sessions again", "reason", why, "epoch", w.meta.facts.Epoch)
	}
	w.checkSmall(ctx)
	if w.stopped() != nil {
		return nil
	}
	w.meta.before, w.meta.backup = before, false
	if err := w.stmts.inTransaction(ctx, func(tx *sql.Tx) error { return w.meta.storeEpoch(ctx, tx) }); err != nil {
		return err
	}
	return w.witness.noteFiles(&w.meta, true)
}

// storeEpoch writes the epoch and the rollback, and marks the database as opened.
func (m *meta) storeEpoch(ctx context.Context, tx *sql.Tx) error {
	put, err := summed(putFact)
	if err != nil {
		return err
	}
	facts := map[string]string{metaOpened: "1", metaEpoch: strconv.FormatInt(m.facts.Epoch, 10), metaBefore: strconv.FormatInt(m.before, 10)}
	if m.rollback != nil {
		data, err := json.Marshal(m.rollback)
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

// putFact inserts or replaces a fact.
const putFact = `
INSERT INTO meta (name, value)
VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`

// markBackup removes the fact "opened" from a copy, so that its first Open begins a new epoch.
func markBackup(ctx context.Context, path string) error {
	db, err := openCopy(path, "rw")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DELETE FROM meta WHERE name = ?", metaOpened) // a deletion needs no checksum, so this works with every schema
	return errors.Join(classify(err), db.Close())
}
