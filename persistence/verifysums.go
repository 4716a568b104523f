package persistence

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// verifySums compares each row with its checksum, and the row numbers that SQLite has assigned with
// those in the tables.
func verifySums(ctx context.Context, db *readPool, sound bool, r *Report) error {
	page := sumPage
	if !sound {
		page = -1 // in one read: rows may be out of order, so that paging by key never ends
	}
	tables := sumColumns()
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		if err := verifyTable(ctx, db, r, table, page); err != nil {
			return err
		}
	}
	return r.note(verifyNumbers(ctx, db))
}

// sumPage is the number of rows that one read compares. A longer read would keep the log from being
// folded.
const sumPage = 2048

// checkedRow is the result for one row. key holds the values of its primary key.
type checkedRow struct {
	key    []any
	intact bool
}

// verifyTable compares the rows of a table with their checksums, page by page in the order of the
// primary key. A table that cannot be read to its end is a finding. A negative limit reads it in
// one page.
func verifyTable(ctx context.Context, db *readPool, r *Report, table string, limit int) error {
	key := primaryKeys()[table]
	scan := func(rows *sql.Rows, c *checkedRow) error {
		c.key = make([]any, len(key))
		into := []any{&c.intact}
		for i := range c.key {
			into = append(into, &c.key[i])
		}
		return rows.Scan(into...)
	}
	first := fmt.Sprintf("SELECT intact(%s t), t.%s FROM %[1]s t ORDER BY %[3]s LIMIT %[4]d", table, strings.Join(key, ", t."), strings.Join(key, ", "), limit)
	after := strings.Replace(first, "ORDER BY", fmt.Sprintf("WHERE (%s) > (?%s) ORDER BY", strings.Join(key, ", "), strings.Repeat(", ?", len(key)-1)), 1)
	page, err := list(ctx, db, scan, first)
	for err == nil && len(page) > 0 {
		for _, row := range page {
			if !row.intact {
				r.Problems = append(r.Problems, damagedRow(ctx, db, table, key, row.key).Error())
			}
		}
		if limit < 0 {
			break
		}
		page, err = list(ctx, db, scan, after, page[len(page)-1].key...)
	}
	return r.note(err)
}

// damagedRow describes a damaged row, with its session if that can still be determined.
func damagedRow(ctx context.Context, db *readPool, table string, columns []string, key []any) *DamagedRowError {
	var named []string
	for i, column := range columns {
		named = append(named, fmt.Sprintf("%s %v", column, key[i]))
	}
	e := &DamagedRowError{Table: table, Row: strings.Join(named, ", ")}
	query := ownerOf[table]
	if slices.Contains(sumColumns()[table], "session") {
		query = fmt.Sprintf("SELECT session_id FROM sessions WHERE session = (SELECT session FROM %s WHERE (%s) = (?%s))",
			table, strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1))
	}
	if query != "" && db.row(ctx, query, key, &e.Session) != nil {
		e.Session = ""
	}
	return e
}

// ownerOf has the query for a row's session, for tables without a column session. The parameters
// are the primary key.
var ownerOf = map[string]string{
	"nodes":        "SELECT session_id FROM branches JOIN sessions USING (session) WHERE branches.branch = ? >> 32",
	"task_events":  "SELECT session_id FROM tasks JOIN sessions USING (session) WHERE task = ?1 AND ?2 <> -1",
	"file_changes": "SELECT session_id FROM file_points JOIN sessions USING (session) WHERE point = ?1 AND ?2 <> -1 AND ?3 <> ''",
}

// numberedTables lists the tables that never reuse a row number, with the column of the number.
var numberedTables = map[string]string{
	"sessions": "session", "branches": "branch", "tasks": "task", "occurrences": "occurrence", "workspaces": "workspace", "file_points": "point",
}

// verifyNumbers checks that SQLite will not assign a number that a table already holds, and that
// the next numbers fit into a place (below 2^31).
func verifyNumbers(ctx context.Context, db *readPool) error {
	for table, key := range numberedTables {
		var stored, assigned int64
		err := db.row(ctx, fmt.Sprintf("SELECT coalesce(max(%s), 0), (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '%s') FROM %[2]s", key, table), nil, &stored, &assigned)
		if err != nil {
			return err
		}
		if assigned < stored || assigned >= 1<<31 {
			return fmt.Errorf("the highest row number of %s is %d, but SQLite recorded %d: %w", table, stored, assigned, ErrCorrupt)
		}
	}
	return nil
}

// rowIntact returns nil if intact is set, else a DamagedRowError. Reads call it with the result of
// the SQL expression intact(...).
func rowIntact(intact bool, table string, id any, session protocol.SessionID) error {
	if intact {
		return nil
	}
	return &DamagedRowError{Table: table, Row: fmt.Sprint(id), Session: session}
}
