package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Inspection checks a store without changing any byte in its directory. If the log holds commits,
// it works on a temporary copy, because SQLite writes files beside a database that it recovers. Its
// methods are safe for concurrent use.
type Inspection struct {
	dir   string
	path  string // of the database, or of its copy
	temp  string // directory of the copy; empty: no copy
	read  *Reader
	meta  meta
	why   string // describes lost commits; empty: none are lost
	older int    // schema version if it is older than the current one; else 0
}

// Inspect opens the store in cfg.Dir for checking. The caller holds the lock of the directory and
// closes the Inspection. It fails with fs.ErrNotExist if no store exists yet and with ErrMissing if
// the store's data is gone. It rejects foreign and newer databases as Open does.
func Inspect(ctx context.Context, cfg Config) (*Inspection, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := &Inspection{dir: cfg.Dir, path: filepath.Join(cfg.Dir, fileName)}
	if err := in.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("check store %s: %w", filepath.Join(cfg.Dir, fileName), err), in.Close())
	}
	return in, nil
}

// open performs the checks of Open that need no writing. A database with an older schema is not
// read any further.
func (in *Inspection) open(ctx context.Context) error {
	there, err := survey(in.dir)
	if err == nil {
		err = there.check()
	}
	if err != nil {
		return err
	}
	if !there.database {
		return fs.ErrNotExist
	}
	if there.log.size > 0 {
		if err := in.copy(); err != nil {
			return fmt.Errorf("copy the database to check it: %w", err)
		}
	}
	found, err := preflight(ctx, in.path, current.version)
	switch {
	case err != nil:
		return err
	case found.version == 0:
		if err := there.checkLost(ctx, in.path, found); err != nil {
			return err
		}
		return fs.ErrNotExist
	case found.version < current.version:
		in.older = found.version
		return nil
	}
	pool, err := in.openPool()
	if err != nil {
		return err
	}
	in.read = newReader(pool, newBlobFiles(filepath.Join(in.dir, blobsName)))
	return in.judge(ctx, there)
}

// judge compares the database with the witness, and keeps the description of lost commits.
func (in *Inspection) judge(ctx context.Context, there remains) error {
	db := in.read.pool.db
	if err := current.check(ctx, db); err != nil {
		return err
	}
	var err error
	if in.meta, err = readMeta(ctx, db); err != nil {
		return err
	}
	how, why := there.seen.judge(in.meta.present(there), bootID())
	if how != rolledBack {
		return nil
	}
	in.why = why
	return checkEmptied(ctx, db, there, why)
}

// copy copies the database and its log into a temporary directory.
func (in *Inspection) copy() (err error) {
	if in.temp, err = os.MkdirTemp("", "lashd-check-*"); err != nil { // mode 0700
		return err
	}
	from := in.path
	in.path = filepath.Join(in.temp, fileName)
	return errors.Join(copyFile(from, in.path), copyFile(from+"-wal", in.path+"-wal"))
}

// copyFile copies a file to a new one with mode 0600.
func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// openPool opens the copy or, without one, the file itself as immutable, so that SQLite takes no
// locks and writes no files beside it.
func (in *Inspection) openPool() (*readPool, error) {
	options := url.Values{"mode": {"rw"}, "_pragma": {"trusted_schema(0)", "cell_size_check(1)"}, "_query_only": {"1"}, "_busy_timeout": {"5000"}}
	if in.temp == "" {
		options.Set("mode", "ro")
		options.Set("immutable", "1")
	}
	path, err := filepath.Abs(in.path)
	if err != nil {
		return nil, err
	}
	return &readPool{db: sql.OpenDB(&connector{dsn: fileURL(path, options)})}, nil
}

// Older returns the schema version of a database that the next start will migrate, else 0. Such a
// database cannot be verified before its migration.
func (in *Inspection) Older() int { return in.older }

// Rollback returns a loss of commits that the next start will find, or an earlier one that is not
// acknowledged. Nil: none.
func (in *Inspection) Rollback() *Rollback {
	if in.why != "" {
		return &Rollback{Problem: in.why}
	}
	return in.meta.rollback
}

// Verify is Reader.Verify.
func (in *Inspection) Verify(ctx context.Context, progress func(done, all int)) (Report, error) {
	return in.read.Verify(ctx, progress)
}

// VerifyTasks is Reader.VerifyTasks.
func (in *Inspection) VerifyTasks(ctx context.Context, fold Fold) ([]string, error) {
	return in.read.VerifyTasks(ctx, fold)
}

// Close closes the database and removes the copy.
func (in *Inspection) Close() error {
	var err error
	if in.read != nil {
		err = in.read.pool.close()
	}
	if in.temp != "" {
		err = errors.Join(err, os.RemoveAll(in.temp))
	}
	return err
}
