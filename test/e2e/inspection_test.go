package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lashd/rpc/protocol"
)

// database is what an inspection reads: the file, or a transaction that is rolled back.
type database interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// inspection checks a store from outside, by the rules of schema.sql and without any code of lashd.
type inspection struct {
	db    database
	dir   string
	known map[string]bool // files that were checked before; nil checks all
}

// all checks everything.
func (i *inspection) all() error {
	ids, err := column[protocol.SessionID](i.db, "SELECT session_id FROM sessions")
	return errors.Join(err, i.of(ids))
}

// of checks the structure, and the logs of these sessions.
func (i *inspection) of(ids []protocol.SessionID) error {
	found := []error{i.structure(), i.rows(), i.tasks(), i.blobs()}
	for _, id := range ids {
		found = append(found, i.chain(id))
	}
	return errors.Join(found...)
}

func (i *inspection) structure() error {
	report, err := column[string](i.db, "PRAGMA integrity_check")
	if err != nil || len(report) != 1 || report[0] != "ok" {
		return fmt.Errorf("I13: integrity_check: %v, %v", report, err)
	}
	broken, err := column[string](i.db, `SELECT "table" FROM pragma_foreign_key_check`)
	if err != nil || len(broken) > 0 {
		return fmt.Errorf("I13: foreign_key_check: %v, %v", broken, err)
	}
	return nil
}

// rules must hold between rows while no turn is open. Each query finds the rows that break one.
var rules = []struct{ invariant, query string }{
	{"I3: turns that are open", "SELECT turn_id FROM turns WHERE state IN ('queued', 'running', 'waiting')"},
	{"I3: turns that ended without a report", "SELECT turn_id FROM turns WHERE report IS NULL AND state NOT IN ('queued', 'running', 'waiting')"},
	{"I3: reports of another state", "SELECT turn_id FROM turns WHERE json_extract(CAST(report AS TEXT), '$.state') <> state"},
	{"I3: effects of turns that ended", "SELECT turn_id FROM effects JOIN turns USING (turn_id)"},
	{"I3: inputs that no turn will use", "SELECT input_id FROM inputs WHERE state NOT IN ('completed', 'cancelled')"},
	{"I3: decisions that nothing waits for", "SELECT decision_id FROM decisions WHERE open = 1"},
	{"I3: nodes of turns that did not complete", "SELECT node_id FROM nodes JOIN turns USING (turn_id) WHERE state IN ('queued', 'running', 'waiting')"},
}

func (i *inspection) rows() error {
	var found []error
	for _, r := range rules {
		ids, err := column[string](i.db, r.query)
		if err != nil || len(ids) > 0 {
			found = append(found, fmt.Errorf("%s: %v, %v", r.invariant, ids, err))
		}
	}
	return errors.Join(found...)
}

// logged is a stored event.
type logged struct {
	seq         uint64
	kind        string
	body, chain []byte
}

// chain follows a session's log to its head. Every link is the sha256 of the previous link, the
// session, the sequence number, the type and the body, each of the last four preceded by its length.
func (i *inspection) chain(id protocol.SessionID) error {
	rows, err := i.db.QueryContext(context.Background(), `
		SELECT e.place & 0xffffffff, e.type, e.body, e.chain FROM events e JOIN sessions s ON e.place >> 32 = s.session
		WHERE s.session_id = ? ORDER BY e.place`, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	link, last := make([]byte, 32), uint64(0)
	for rows.Next() {
		var e logged
		if err := rows.Scan(&e.seq, &e.kind, &e.body, &e.chain); err != nil {
			return err
		}
		if link = e.link(link, id); e.seq != last+1 || !bytes.Equal(link, e.chain) {
			return fmt.Errorf("I2: session %s: event %d after %d breaks the chain", id, last, e.seq)
		}
		last = e.seq
	}
	return errors.Join(rows.Err(), i.head(id, last, link))
}

func (e logged) link(before []byte, id protocol.SessionID) []byte {
	h := sha256.New()
	h.Write(before)
	for _, field := range [][]byte{[]byte(id), binary.BigEndian.AppendUint64(nil, e.seq), []byte(e.kind), e.body} {
		binary.Write(h, binary.BigEndian, uint64(len(field))) // writing to a hash cannot fail
		h.Write(field)
	}
	return h.Sum(nil)
}

func (i *inspection) head(id protocol.SessionID, seq uint64, chain []byte) error {
	head, err := column[string](i.db, "SELECT seq || ' ' || lower(hex(chain)) FROM sessions WHERE session_id = ?", id)
	if want := fmt.Sprint(seq, " ", hex.EncodeToString(chain)); err != nil || len(head) != 1 || head[0] != want {
		return fmt.Errorf("I2: session %s: the log ends at %s, the head is %v, %v", id, want, head, err)
	}
	return nil
}

// blobs compares the file of each large artifact with its name and size.
func (i *inspection) blobs() error {
	names, err := column[string](i.db, "SELECT digest || ' ' || size FROM blobs WHERE body IS NULL")
	found := []error{err}
	for _, name := range names {
		if i.known[name] {
			continue
		}
		digest := name[:64]
		data, err := os.ReadFile(filepath.Join(i.dir, "blobs", digest[:2], digest))
		sum := sha256.Sum256(data)
		if got := fmt.Sprint(hex.EncodeToString(sum[:]), " ", len(data)); err != nil || got != name {
			found = append(found, fmt.Errorf("I7: the file of artifact %s is %s, %v", name, got, err))
		}
		if i.known != nil {
			i.known[name] = true
		}
	}
	return errors.Join(found...)
}

// column returns the values of a query with one column.
func column[T any](db database, query string, args ...any) (list []T, err error) {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}
