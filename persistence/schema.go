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

// SchemaVersion is the version of schema.sql.
const SchemaVersion = 2

// definition is a schema and the way to it from older ones.
type definition struct {
	version    int
	schema     string
	migrations fs.FS // migrations/000N.sql
}

var current = definition{version: SchemaVersion, schema: lashd.Schema, migrations: lashd.Migrations}

// prepareSchema creates the schema in an empty database, or migrates an older one after a backup.
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

func stamp(ctx context.Context, tx *sql.Tx, version int) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version))
	return err
}

const schemaObjects = `
SELECT sql
FROM sqlite_schema
WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'`

// check compares every object with the statements of schema.sql: a trigger or a view in the file would run as us.
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
			return fmt.Errorf("schema %d lacks %.60q: %w", d.version, want[i], ErrOtherSchema)
		case i >= len(want) || got[i] != want[i]:
			return fmt.Errorf("schema %d does not have %.60q: %w", d.version, got[i], ErrOtherSchema)
		}
	}
	return nil
}

// schemaStatements cuts the schema into statements as SQLite keeps them. Making a second database to compare with would
// cost half of the start-up.
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
