package main

import (
	"context"
	"database/sql"
	"strconv"

	_ "modernc.org/sqlite"
)

const schema = `
CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, turns INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS items (session INTEGER, seq INTEGER, body BLOB NOT NULL, PRIMARY KEY (session, seq)) STRICT, WITHOUT ROWID`

// store is the database on a single connection with prepared statements. database/sql's transactions
// would cost a goroutine and a lock each.
type store struct {
	db                                         *sql.DB
	conn                                       *sql.Conn
	begin, commit, insert, touch, create, list *sql.Stmt
}

// open opens or creates the database. sync is SQLite's synchronous mode.
func open(ctx context.Context, path, sync string) *store {
	db := must(sql.Open("sqlite", path))
	conn := must(db.Conn(ctx))
	for _, q := range []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = " + sync, schema} {
		must(conn.ExecContext(ctx, q))
	}
	prepare := func(q string) *sql.Stmt { return must(conn.PrepareContext(ctx, q)) }
	return &store{
		db:     db,
		conn:   conn,
		begin:  prepare("BEGIN IMMEDIATE"),
		commit: prepare("COMMIT"),
		insert: prepare("INSERT INTO items VALUES (?, ?, ?)"),
		touch:  prepare("UPDATE sessions SET turns = turns + 1 WHERE id = ?"),
		create: prepare("INSERT INTO sessions (turns) VALUES (0)"),
		list:   prepare("SELECT body FROM items WHERE session = ? ORDER BY seq"),
	}
}

// close checkpoints the write-ahead log. A failure loses nothing: everything has been committed.
func (st *store) close() {
	for _, s := range []*sql.Stmt{st.begin, st.commit, st.insert, st.touch, st.create, st.list} {
		s.Close()
	}
	st.conn.Close()
	st.db.Close()
}

func (st *store) add(ctx context.Context) *session {
	res := must(st.create.ExecContext(ctx))
	return &session{id: must(res.LastInsertId())}
}

// load reads a session with its history.
func (st *store) load(ctx context.Context, sid string) *session {
	s := &session{id: must(strconv.ParseInt(sid, 10, 64))}
	rows := must(st.list.QueryContext(ctx, s.id))
	defer rows.Close()
	for rows.Next() {
		var body sql.RawBytes
		must(0, rows.Scan(&body))
		s.add(body)
		s.next++
	}
	must(0, rows.Err())
	return s
}

// save commits items in one durable transaction.
func (st *store) save(ctx context.Context, s *session, items ...[]byte) {
	must(st.begin.ExecContext(ctx))
	for _, it := range items {
		must(st.insert.ExecContext(ctx, s.id, s.next, it))
		s.next++
	}
	must(st.touch.ExecContext(ctx, s.id))
	must(st.commit.ExecContext(ctx))
}
