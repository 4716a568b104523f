package textindex

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"slices"
	"strings"
)

// Message is a message to add to the index.
type Message struct {
	Branch, Generation int64
	AtMs               int64
	Agent              bool // a model wrote it
	Cwd                string
	Text               string
}

// Mark says that the messages of a branch are in the index up to a generation. Messages after it are
// removed. -1 removes the branch.
type Mark struct{ Branch, Generation int64 }

// Title is the title of a session. An empty title removes it.
type Title struct {
	Session int64
	Title   string
}

// Batch is a change of the index, which is made as a whole.
type Batch struct {
	Messages []Message
	Marks    []Mark // each branch once
	Titles   []Title
}

// maxText is the number of bytes of a message that are indexed.
const maxText = 256 << 10

// Write makes a change. Adding a message that is in the index changes nothing.
func (x *Index) Write(ctx context.Context, b *Batch) error {
	return x.inTransaction(ctx, func(tx *sql.Tx) error {
		for _, m := range b.Marks {
			if err := mark(ctx, tx, m); err != nil {
				return err
			}
		}
		if err := add(ctx, tx, b.Messages); err != nil {
			return err
		}
		for _, t := range b.Titles {
			if err := setTitle(ctx, tx, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// Statements of Write.
const (
	insertMessage = `INSERT INTO messages (message, place, agent) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	insertText    = `INSERT INTO message_text (rowid, text, workspace) VALUES (?, ?, ?)`
	selectRest    = `SELECT message FROM messages WHERE place > ? AND place < ?`
	saveMark      = `INSERT INTO branches (branch, generation) VALUES (?, ?) ON CONFLICT DO UPDATE SET generation = excluded.generation`
)

// mark stores a mark and removes the messages after it.
func mark(ctx context.Context, tx *sql.Tx, m Mark) error {
	rows, err := tx.QueryContext(ctx, selectRest, m.Branch<<32+m.Generation, (m.Branch+1)<<32)
	rest, err := collect(rows, err, func(rows *sql.Rows, n *int64) error { return rows.Scan(n) })
	if err != nil {
		return err
	}
	for _, n := range rest {
		if _, err := tx.ExecContext(ctx, "DELETE FROM message_text WHERE rowid = ?", n); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM messages WHERE message = ?", n); err != nil {
			return err
		}
	}
	if m.Generation < 0 {
		_, err = tx.ExecContext(ctx, "DELETE FROM branches WHERE branch = ?", m.Branch)
	} else {
		_, err = tx.ExecContext(ctx, saveMark, m.Branch, m.Generation)
	}
	return err
}

// add inserts messages by their time, because FTS5 writes a segment whenever numbers go down.
func add(ctx context.Context, tx *sql.Tx, all []Message) error {
	slices.SortFunc(all, func(a, b Message) int { return cmp.Compare(number(a), number(b)) })
	for _, m := range all {
		n, err := place(ctx, tx, m)
		if err != nil || n == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, insertText, n, capped(m.Text), workspace(m.Cwd)); err != nil {
			return err
		}
	}
	return nil
}

// capped returns the part of a text that is indexed.
func capped(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// number returns the first number that a message may have: its time, and its place within that
// millisecond.
func number(m Message) int64 { return min(max(m.AtMs, 0), 1<<42)<<20 | m.Generation&0xffff<<4 }

// place gives a message a free number and returns it. 0: the message is in the index.
func place(ctx context.Context, tx *sql.Tx, m Message) (int64, error) {
	at := m.Branch<<32 | m.Generation
	for n := number(m); ; n++ {
		res, err := tx.ExecContext(ctx, insertMessage, n, at, m.Agent)
		if err != nil {
			return 0, err
		}
		if inserted, err := res.RowsAffected(); err != nil || inserted > 0 {
			return n, err
		}
		var there int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM messages WHERE place = ?", at).Scan(&there); err != nil || there > 0 {
			return 0, err
		}
	}
}

// workspace returns the word that stands for a directory.
func workspace(cwd string) string {
	sum := sha256.Sum256([]byte(cwd))
	return "w" + hex.EncodeToString(sum[:8])
}

// setTitle replaces the title of a session.
func setTitle(ctx context.Context, tx *sql.Tx, t Title) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM titles WHERE rowid = ?", t.Session)
	if err == nil && t.Title != "" {
		_, err = tx.ExecContext(ctx, "INSERT INTO titles (rowid, title) VALUES (?, ?)", t.Session, t.Title)
	}
	return err
}

// Erase removes the traces of deleted text from the log of the index file.
func (x *Index) Erase(ctx context.Context) error {
	_, err := x.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// Marks reads up to limit marks after a branch, in order.
func (x *Index) Marks(ctx context.Context, after int64, limit int) ([]Mark, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT branch, generation FROM branches WHERE branch > ? ORDER BY branch LIMIT ?", after, limit)
	return collect(rows, err, func(rows *sql.Rows, m *Mark) error { return rows.Scan(&m.Branch, &m.Generation) })
}

// Mark reads the mark of a branch; -1: nothing of it is in the index.
func (x *Index) Mark(ctx context.Context, branch int64) (int64, error) {
	found, err := x.Marks(ctx, branch-1, 1)
	if err != nil || len(found) == 0 || found[0].Branch != branch {
		return -1, err
	}
	return found[0].Generation, nil
}

// Titles reads up to limit titles after a session, in order.
func (x *Index) Titles(ctx context.Context, after int64, limit int) ([]Title, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT rowid, title FROM titles WHERE rowid > ? ORDER BY rowid LIMIT ?", after, limit)
	return collect(rows, err, func(rows *sql.Rows, t *Title) error { return rows.Scan(&t.Session, &t.Title) })
}
