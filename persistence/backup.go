package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"lashd/rpc/protocol"
)

// copyTo writes a compact copy of the database, checks it and puts it in place.
func (s *Store) copyTo(ctx context.Context, target string, check func(context.Context, *sql.DB) error) error {
	part := target + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a crash
		return err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part) // after the rename there is nothing under that name
	err = errors.Join(s.vacuumInto(ctx, part), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := inspect(ctx, part, check); err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	if err := os.Rename(part, target); err != nil {
		return err
	}
	return syncDir(filepath.Dir(target))
}

// vacuumInto has a connection of its own: those for reading may not write, not even elsewhere, and the writer's is busy.
func (s *Store) vacuumInto(ctx context.Context, path string) error {
	db, err := openPool(s.path, commonOptions(s.cfg.Durability), 1)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", path)
	return errors.Join(classify(err), db.Close())
}

func inspect(ctx context.Context, path string, check func(context.Context, *sql.DB) error) error {
	db, err := openCopy(path, "ro")
	if err != nil {
		return err
	}
	return errors.Join(check(ctx, db), db.Close())
}

func checkStructureOf(ctx context.Context, db *sql.DB) error {
	if err := quickCheck(ctx, db); err != nil {
		return err
	}
	return checkForeignKeys(ctx, db)
}

func scanDigest(rows *sql.Rows, d *protocol.Digest) error { return rows.Scan(d) }

// syncDir makes names in a directory durable. Windows has no such call; there a rename is journaled by the system.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
