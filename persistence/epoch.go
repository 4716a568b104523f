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

// Rollback says that commits which lashd had stored are gone. It is kept in the database until a person acknowledges it.
type Rollback struct {
	AtMs    int64  `json:"atMs"`    // when it was found
	Problem string `json:"problem"` // what is gone, in a sentence without an end
}

func (r *Rollback) Error() string {
	return r.Problem + "; it may have been restored from a copy. Run `lashd doctor` for options."
}

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

// meta is what the database says of itself, in the table of that name.
type meta struct {
	facts    Facts
	commits  int64     // that the database has counted
	before   int64     // the epoch before this one; 0: none
	backup   bool      // it is a backup that was not opened before
	rollback *Rollback // a loss of commits that nobody has acknowledged; nil: none
}

// readMeta reads what the database says of itself.
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

// present is the database as it was found when nothing had been written yet.
func (m *meta) present(there remains) present {
	return present{
		storeID: m.facts.StoreID, epoch: m.facts.Epoch, before: m.before, commits: m.commits, backup: m.backup,
		file: there.file, log: there.log,
	}
}

const anySession = `SELECT EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM deleted_sessions)`

// settleEpoch compares the database with what was seen of it. A copy, and a database that lost commits, gets a new epoch, so that
// a client's cursor is answered with a gap instead of other events. One that has lost all is refused.
func (w *writer) settleEpoch(ctx context.Context, there remains, created bool) error {
	how, why := continues, ""
	if !created {
		how, why = there.seen.judge(w.meta.present(there), bootID())
	}
	if how == rolled {
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
func (w *writer) beginEpoch(ctx context.Context, how continuity, why string) error {
	before := w.meta.facts.Epoch
	w.meta.facts.Epoch = newEpoch()
	if how == rolled {
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

const putFact = `
INSERT INTO meta (name, value)
VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`

// markBackup has the first Open of a copy begin a new epoch.
func markBackup(ctx context.Context, path string) error {
	db, err := openCopy(path, "rw")
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DELETE FROM meta WHERE name = ?", metaOpened) // which needs no sum, and so suits every schema
	return errors.Join(classify(err), db.Close())
}
