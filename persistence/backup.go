package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"lashd/internal/durable"
	"lashd/rpc/protocol"
)

// BackupReport lists damage that a backup contains. The zero value means that it is complete.
type BackupReport struct {
	Missing  []string // files of the data directory that are missing or damaged, as paths relative to it
	Problems []string // damaged rows; the backup has them as they are
}

// Backup writes a verified copy of the database and its blobs into a new directory dir, which can
// serve as a data directory. The writer continues during the copy. dir appears only when the copy
// is complete; damaged files and rows are reported, not fatal. Backup also removes partial backups
// that a killed backup left beside dir.
//
// It fails with fs.ErrExist if dir exists, with ErrCorrupt if the structure of the database is
// damaged, and with ErrFull if the disk is full.
func (s *Store) Backup(ctx context.Context, dir string) (BackupReport, error) {
	report, err := s.writeBackup(ctx, dir)
	if errors.Is(err, syscall.ENOSPC) {
		err = named(ErrFull, err)
	}
	if err != nil {
		return BackupReport{}, fmt.Errorf("backup to %s: %w", dir, err)
	}
	return report, nil
}

// writeBackup builds the backup in a partial directory beside dir and renames it at the end. No
// blob file is removed while it runs.
func (s *Store) writeBackup(ctx context.Context, dir string) (report BackupReport, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return report, fs.ErrExist
	}
	if err := removePartials(filepath.Dir(dir)); err != nil {
		s.cfg.Log.Warn("interrupted backups not removed", "dir", filepath.Dir(dir), "error", err)
	}
	part, err := newPartial(s.cfg.Dir, filepath.Dir(dir))
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, part.close()) }()
	blobs := s.writer.blobs
	blobs.hold()
	defer blobs.release()
	err = copyTo(ctx, s.path, s.cfg.Durability, filepath.Join(part.path, fileName), func(ctx context.Context, db *sql.DB) error {
		return checkAndFill(ctx, db, blobs, part.path, &report)
	})
	if err == nil {
		err = os.Rename(part.path, dir)
	}
	if err == nil {
		err = durable.Sync(filepath.Dir(dir))
	}
	return report, err
}

// checkAndFill verifies a copy of the database and copies its blobs into dir.
func checkAndFill(ctx context.Context, db *sql.DB, blobs *blobFiles, dir string, report *BackupReport) error {
	if err := checkStructureOf(ctx, db); err != nil {
		return err
	}
	r := &readPool{db: db}
	rows, err := verifyRows(ctx, r, true, func(int, int) {})
	if err != nil {
		return err
	}
	report.Problems = rows.Problems
	return copyBlobs(ctx, r, blobs, filepath.Join(dir, blobsName), report)
}

// copyTo writes a compact copy of the database at path, checks it with check, and renames it to
// target. A crash leaves at most target.part, which the next copyTo removes.
func copyTo(ctx context.Context, path, durability, target string, check func(context.Context, *sql.DB) error) error {
	part := target + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a crash
		return err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part) // no effect after the rename
	err = vacuumInto(ctx, path, durability, part)
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
	return durable.Sync(filepath.Dir(target))
}

// vacuumInto runs VACUUM INTO on a connection of its own. Read connections are query-only, and the
// writer's is in use.
func vacuumInto(ctx context.Context, path, durability, target string) error {
	db, err := openPool(path, commonOptions(durability), 1)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", target)
	return errors.Join(classify(err), db.Close())
}

// inspect opens a database read-only, calls check, and closes it.
func inspect(ctx context.Context, path string, check func(context.Context, *sql.DB) error) error {
	db, err := openCopy(path, "ro")
	if err != nil {
		return err
	}
	return errors.Join(check(ctx, db), db.Close())
}

// checkStructureOf reads the whole database. Unlike quickCheck it compares each index with its
// table. It also checks foreign keys. A problem is ErrCorrupt.
func checkStructureOf(ctx context.Context, db *sql.DB) error {
	if err := pragmaCheck(ctx, db, "integrity_check(1)"); err != nil {
		return err
	}
	return checkForeignKeys(ctx, db)
}

// copyBlobs copies the blob files that a database refers to into dir. It reports missing and
// damaged files and skips them.
func copyBlobs(ctx context.Context, r *readPool, from *blobFiles, dir string, report *BackupReport) error {
	digests, err := list(ctx, r, scanDigest, "SELECT digest FROM blobs WHERE body IS NULL ORDER BY digest")
	if err != nil {
		return err
	}
	into := newBlobFiles(dir)
	for _, d := range digests {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := from.read(d)
		if err == nil && protocol.DigestOf(data) != d {
			err = ErrCorrupt
		}
		if err == nil {
			err = into.write(d, data)
		} else if errors.Is(err, ErrCorrupt) {
			report.Missing = append(report.Missing, filepath.Join(blobsName, string(d[:2]), string(d)))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scanDigest scans a row with one digest.
func scanDigest(rows *sql.Rows, d *protocol.Digest) error { return rows.Scan(d) }
