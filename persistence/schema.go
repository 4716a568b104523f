package persistence

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"lashd"
)

// SchemaVersion is the version of schema.sql, stored as user_version. Each change of the schema
// adds one.
const SchemaVersion = 3

// definition is a schema with the migrations from older versions.
type definition struct {
	version    int
	schema     string
	migrations fs.FS // migrations/000N.sql
}

// current is the schema of this version of lashd.
var current = definition{version: SchemaVersion, schema: lashd.Schema, migrations: lashd.Migrations}

// prepareSchema creates the tables of a new database, migrates an older one after a backup, and
// then compares the tables with schema.sql.
func (s *Store) prepareSchema(ctx context.Context, found preview) error {
	switch {
	case found.version == 0:
		return s.def.create(ctx, s.stmts)
	case found.version < s.def.version:
		if err := s.migrate(ctx, found.version); err != nil {
			return err
		}
	}
	return s.def.check(ctx, s.stmts.conn)
}

// create makes the tables in an empty database, with a random store id, epoch and secret. A
// database with tables belongs to another program and is rejected.
func (d *definition) create(ctx context.Context, st *statements) error {
	return st.inTransaction(ctx, func(tx *sql.Tx) error {
		var tables int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
			return err
		}
		if tables > 0 {
			return errors.New("this is a database of another program")
		}
		if _, err := tx.ExecContext(ctx, d.schema); err != nil {
			return fmt.Errorf("schema.sql: %w", err)
		}
		facts, err := summed("INSERT INTO meta (name, value) VALUES ('store_id', ?), ('epoch', ?), ('opened', '1'), ('commits', '0'), ('secret', ?)")
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, facts, uuid.NewString(), strconv.FormatInt(newEpoch(), 10), rand.Text()); err != nil {
			return err
		}
		return stamp(ctx, tx, d.version)
	})
}

// stamp marks the database as lashd's, with the version of its schema.
func stamp(ctx context.Context, tx *sql.Tx, version int) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version))
	return err
}

// schemaObjects reads the SQL of every table, index, view and trigger.
const schemaObjects = `
SELECT sql
FROM sqlite_schema
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'`

// check compares every object of the database with schema.sql, and fails with ErrOtherSchema. An
// unexpected trigger or view would run inside lashd's own statements. The comparison is textual:
// SQLite stores the text of each CREATE statement.
func (d *definition) check(ctx context.Context, db queryer) error {
	rows, err := db.QueryContext(ctx, schemaObjects)
	if err != nil {
		return classify(err)
	}
	got, err := collect(rows, func(rows *sql.Rows, o *string) error { return rows.Scan(o) })
	if err != nil {
		return err
	}
	want := schemaStatements(d.schema)
	slices.Sort(got)
	slices.Sort(want)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got) || (i < len(want) && want[i] < got[i]):
			return fmt.Errorf("the database lacks an object of schema %d: %.60q: %w", d.version, want[i], ErrOtherSchema)
		case i >= len(want) || got[i] != want[i]:
			return fmt.Errorf("the database has an object that is not in schema %d: %.60q: %w", d.version, got[i], ErrOtherSchema)
		}
	}
	return nil
}

// schemaStatements splits schema.sql into statements as SQLite stores them. Comparing with a
// second, fresh database instead would take half of the start-up time.
func schemaStatements(schema string) []string {
	var all []string
	var bare strings.Builder
	for line := range strings.Lines(schema) {
		if !strings.HasPrefix(line, "--") {
			bare.WriteString(line)
		}
	}
	for part := range strings.SplitSeq(bare.String(), ";\n") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}
