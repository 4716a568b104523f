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

// Inspection is a store that is checked and not changed: not a byte in its directory. If the log holds commits, it reads a copy of the
// database, as SQLite writes beside what it recovers. Its methods are safe for concurrent use.
type Inspection struct {
	dir   string
	path  string // of the database, or of its copy
	temp  string // directory of the copy; empty: there is none
	read  *Reader
	meta  meta
	why   string // commits are gone; empty: none are
	older int    // the schema, if it is older than ours; else 0
}

// Inspect opens the store in cfg.Dir for checking. The caller holds the lock of the directory and closes the Inspection. It fails
// with fs.ErrNotExist if there is no store yet, with ErrMissing if there was one whose data is gone, and like Open for a database that
// is not ours or newer.
func Inspect(ctx context.Context, cfg Config) (*Inspection, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := &Inspection{dir: cfg.Dir, path: filepath.Join(cfg.Dir, fileName)}
	if err := in.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("check store %s: %w", filepath.Join(cfg.Dir, fileName), err), in.Close())
	}
	return in, nil
}

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
		if err := there.lost(ctx, in.path, found); err != nil {
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

// judge reads what the database says of itself, and compares it with what was seen of it.
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
	if how != rolled {
		return nil
	}
	in.why = why
	return checkEmptied(ctx, db, there, why)
}

// copy brings the database and its log into a directory for temporary files.
func (in *Inspection) copy() (err error) {
	if in.temp, err = os.MkdirTemp("", "lashd-check-*"); err != nil { // mode 0700
		return err
	}
	from := in.path
	in.path = filepath.Join(in.temp, fileName)
	return errors.Join(copyFile(from, in.path), copyFile(from+"-wal", in.path+"-wal"))
}

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

// openPool opens the copy, or else the file itself, which SQLite then takes for one that nobody writes.
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

// Older is the schema of a database that the next start migrates, which cannot be verified before; else 0.
func (in *Inspection) Older() int { return in.older }

// Rollback is nil, or a loss of commits: one that the next start will find, or one that was found and not acknowledged.
func (in *Inspection) Rollback() *Rollback {
	if in.why != "" {
		return &Rollback{Problem: in.why}
	}
	return in.meta.rollback
}

// Verify is that of Store.
func (in *Inspection) Verify(ctx context.Context, progress func(done, all int)) (Report, error) {
	return in.read.Verify(ctx, progress)
}

// VerifyTasks is that of Store.
func (in *Inspection) VerifyTasks(ctx context.Context, fold Fold) ([]string, error) {
	return in.read.VerifyTasks(ctx, fold)
}

// Close removes the copy.
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
