package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// migrate makes a verified backup beside the database (lashd-schemaN.backup.db) and then runs the
// missing migrations in one transaction. A crash leaves the old version. Foreign keys are off
// during the migrations and verified at their end.
func (s *Store) migrate(ctx context.Context, from int) error {
	s.cfg.Progress(fmt.Sprintf("backing up the database before migrating it from schema %d to %d", from, s.def.version))
	if err := copyTo(ctx, s.path, s.cfg.Durability, filepath.Join(s.cfg.Dir, fmt.Sprintf("lashd-schema%d.backup.db", from)), checkStructureOf); err != nil {
		return fmt.Errorf("backup before migration: %w", err)
	}
	s.cfg.Progress("migrating the database")
	// Migrations replace a table by a new one and drop the old. With foreign keys on, that would delete rows that refer to it.
	if _, err := s.stmts.conn.ExecContext(ctx, "PRAGMA foreign_keys = 0"); err != nil {
		return classify(err)
	}
	err := s.stmts.inTransaction(ctx, func(tx *sql.Tx) error { return s.def.migrate(ctx, tx, from) })
	_, on := s.stmts.conn.ExecContext(ctx, "PRAGMA foreign_keys = 1")
	return errors.Join(err, classify(on))
}

// migrate runs the migrations after version from, in order, and verifies foreign keys.
func (d *definition) migrate(ctx context.Context, tx *sql.Tx, from int) error {
	for v := from + 1; v <= d.version; v++ {
		script, err := fs.ReadFile(d.migrations, fmt.Sprintf("migrations/%04d.sql", v))
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(script)); err != nil {
			return fmt.Errorf("migration %d: %w", v, err)
		}
	}
	if err := checkForeignKeys(ctx, tx); err != nil {
		return err
	}
	return stamp(ctx, tx, d.version)
}

// queryer is what *sql.DB, *sql.Conn and *sql.Tx have in common for reading.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkForeignKeys returns ErrCorrupt if some row refers to a missing row.
func checkForeignKeys(ctx context.Context, db queryer) error {
	var table string
	err := db.QueryRowContext(ctx, `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`).Scan(&table)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return classify(err)
	}
	return fmt.Errorf("a row of %s refers to a missing row: %w", table, ErrCorrupt)
}

// quickCheck checks the structure of the database without comparing indexes with their tables.
func quickCheck(ctx context.Context, db queryer) error { return pragmaCheck(ctx, db, "quick_check(1)") }

// pragmaCheck runs a checking PRAGMA and returns ErrCorrupt with its finding unless it is "ok".
func pragmaCheck(ctx context.Context, db queryer, pragma string) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&verdict); err != nil {
		return classify(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%s: %w", verdict, ErrCorrupt)
	}
	return nil
}
