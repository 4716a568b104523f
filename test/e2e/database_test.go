package e2e

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // reads the database beside the daemon, as any program could
)

// database opens the database file of a data directory in the given mode.
func (h *home) database(mode string) *sql.DB {
	h.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.dir, "lashd.db")+"?mode="+mode+"&_pragma=busy_timeout(5000)")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { db.Close() })
	return db
}

// locked keeps the daemon from committing until the returned function is called.
func (h *home) locked() (unlock func()) {
	h.t.Helper()
	conn, err := h.database("rw").Conn(h.t.Context())
	if err == nil {
		_, err = conn.ExecContext(h.t.Context(), "BEGIN IMMEDIATE")
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.WithoutCancel(h.t.Context()), "ROLLBACK"); err != nil {
			h.t.Error(err)
		}
		conn.Close()
	}
}

// unanswered starts a request while nothing can be stored, so that no answer comes before the daemon
// dies. The returned function releases the database.
func (h *home) unanswered(f func() error) (unlock func()) {
	h.t.Helper()
	unlock = h.locked()
	answer := make(chan error, 1)
	go func() { answer <- f() }()
	time.Sleep(30 * time.Millisecond) // gives the request time to reach the daemon
	h.t.Cleanup(func() {
		if <-answer == nil {
			h.t.Error("a request was acknowledged that could not be stored")
		}
	})
	return unlock
}

// number runs a query that returns one number.
func number(t *testing.T, db database, query string, args ...any) int {
	t.Helper()
	list, err := column[int](db, query, args...)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v, %v", query, list, err)
	}
	return list[0]
}
