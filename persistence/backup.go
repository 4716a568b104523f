package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"lashd/rpc/protocol"
)

// Backup writes a verified copy of the database, with the blobs that it refers to, into a directory of that name, which can be
// used as a data directory. It appears when it is whole. Turns go on meanwhile. An error is fs.ErrExist if there is something of
// that name.
func (s *Store) Backup(ctx context.Context, dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("backup to %s: %w", dir, fs.ErrExist)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), ".lashd-backup-*") // mode 0700
	if err != nil {
		return fmt.Errorf("backup to %s: %w", dir, err)
	}
	defer os.RemoveAll(part) // after the rename there is nothing under that name
	s.blobs.hold()
	defer s.blobs.release()
	err = s.copyTo(ctx, filepath.Join(part, fileName), func(ctx context.Context, db *sql.DB) error { return s.checkAndFill(ctx, db, part) })
	if err == nil {
		err = os.Rename(part, dir)
	}
	if err == nil {
		err = syncDir(filepath.Dir(dir))
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = named(ErrFull, err)
	}
	if err != nil {
		return fmt.Errorf("backup to %s: %w", dir, err)
	}
	return nil
}

// checkAndFill verifies a copy of the database, and brings the blobs that it refers to beside it.
func (s *Store) checkAndFill(ctx context.Context, db *sql.DB, dir string) error {
	if err := checkStructureOf(ctx, db); err != nil {
		return err
	}
	r := &reader{db: db}
	report, err := verifyRows(ctx, r, true, func(int, int) {})
	if err == nil && len(report.Problems) > 0 {
		err = fmt.Errorf("%s: %w", report.Problems[0], ErrCorrupt)
	}
	if err != nil {
		return err
	}
	return s.copyBlobs(ctx, r, filepath.Join(dir, blobsName))
}

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
	err = s.vacuumInto(ctx, part)
	if err == nil {
		err = markBackup(ctx, part)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
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

// checkStructureOf reads everything. Unlike quickCheck it compares each index with its table.
func checkStructureOf(ctx context.Context, db *sql.DB) error {
	if err := pragmaCheck(ctx, db, "integrity_check(1)"); err != nil {
		return err
	}
	return checkForeignKeys(ctx, db)
}

// copyBlobs brings the files that a copy of the database refers to into dir.
func (s *Store) copyBlobs(ctx context.Context, r *reader, dir string) error {
	digests, err := list(ctx, r, scanDigest, "SELECT digest FROM blobs WHERE body IS NULL")
	if err != nil {
		return err
	}
	into := newBlobFiles(dir)
	for _, d := range digests {
		data, err := s.blobs.read(d)
		if err != nil {
			return err
		}
		if err := into.write(d, data); err != nil {
			return err
		}
	}
	return nil
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
