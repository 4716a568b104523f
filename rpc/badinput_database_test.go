package rpc_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"
)

// database is a second connection to the daemon's database.
type database struct {
	mu      sync.Mutex
	db      *sql.DB
	version int64
	rows    string
}

func openDatabase(t testing.TB, dir string) *database {
	t.Helper()
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.Join(dir, "lashd.db"), RawQuery: "mode=ro&_query_only=1"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // data_version belongs to a connection
	t.Cleanup(func() { db.Close() })
	return &database{db: db}
}

// dump returns every row of every table except the number of commits. It reads them only if there were commits since the last call.
func (d *database) dump(t testing.TB) string {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var version int64
	if err := d.db.QueryRow("PRAGMA data_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version == d.version {
		return d.rows
	}
	var all strings.Builder
	for _, table := range d.query(t, "SELECT name FROM sqlite_schema WHERE type = 'table'") {
		for _, row := range d.query(t, `SELECT * FROM "`+table+`"`) {
			if !strings.HasPrefix(row, "commits|") { // counted up to a second after they were made
				fmt.Fprintf(&all, "%s %q\n", table, row)
			}
		}
	}
	d.version, d.rows = version, all.String()
	return d.rows
}

func (d *database) query(t testing.TB, query string) []string {
	t.Helper()
	rows, err := d.db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var all []string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var row strings.Builder
		for i, v := range values {
			if i > 0 {
				row.WriteByte('|')
			}
			row.Write(v)
		}
		all = append(all, row.String())
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
