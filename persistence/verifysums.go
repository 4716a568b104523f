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

// verifySums compares each row with its sum, and the numbers that the tables have given with those that they hold.
func verifySums(ctx context.Context, db *readPool, sound bool, r *Report) error {
	page := sumPage
	if !sound {
		page = -1 // rows may be out of order, and pages by key would never end; nobody writes to a damaged database
	}
	tables := sumColumns()
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		if err := verifyTable(ctx, db, r, table, page); err != nil {
			return err
		}
	}
	return r.note(verifyNumbers(ctx, db))
}

// sumPage is how many rows one read compares: a long read would keep the log from being folded in.
const sumPage = 2048

// checkedRow is a row by the columns of its primary key.
type checkedRow struct {
	key    []any
	intact bool
}

// verifyTable reads a table page by page, in the order of its primary key. A table that cannot be read to its end is a finding.
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

// damagedRow describes a damaged row, with the session that it belongs to if that can still be told.
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

// ownerOf tells the session of a row in tables whose rows do not name it.
var ownerOf = map[string]string{
	"nodes":        "SELECT session_id FROM branches JOIN sessions USING (session) WHERE branches.branch = ? >> 32",
	"task_events":  "SELECT session_id FROM tasks JOIN sessions USING (session) WHERE task = ?1 AND ?2 <> -1",
	"file_changes": "SELECT session_id FROM file_points JOIN sessions USING (session) WHERE point = ?1 AND ?2 <> -1 AND ?3 <> ''",
}

// numberedTables are those whose numbers are never given twice, with the column of the number.
var numberedTables = map[string]string{
	"sessions": "session", "branches": "branch", "tasks": "task", "occurrences": "occurrence", "workspaces": "workspace", "file_points": "point",
}

// verifyNumbers checks that SQLite gives no number again that a table holds, and that those to come fit into a place.
func verifyNumbers(ctx context.Context, db *readPool) error {
	for table, key := range numberedTables {
		var held, given int64
		err := db.row(ctx, fmt.Sprintf("SELECT coalesce(max(%s), 0), (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '%s') FROM %[2]s", key, table), nil, &held, &given)
		if err != nil {
			return err
		}
		if given < held || given >= 1<<31 {
			return fmt.Errorf("the newest number of %s is %d, and SQLite says that it is %d: %w", table, held, given, ErrCorrupt)
		}
	}
	return nil
}

// rowIntact is nil, or the error of a row that a read found damaged.
func rowIntact(intact bool, table string, id any, session protocol.SessionID) error {
	if intact {
		return nil
	}
	return &DamagedRowError{Table: table, Row: fmt.Sprint(id), Session: session}
}
