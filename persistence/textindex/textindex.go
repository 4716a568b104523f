// Package textindex finds messages and titles of sessions by their words. The index is a SQLite file of its own beside the
// database, whose contents are derived from it: losing it loses nothing. An Index is safe for concurrent use, but only one
// goroutine may write.
package textindex

import (
	"context"
	"database/sql"
	_ "embed" // for the schema
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// FileName is the name of the index in the data directory.
const FileName = "lashd-search.db"

// version is that of the schema and of the text that is indexed. An index of another version is made
// again.
const version = 1

//go:embed index.sql
var schema string

// Source identifies the contents of a store. An index of another source is made again.
type Source struct {
	StoreID string
	Epoch   int64
}

// Index is an open index.
type Index struct{ db *sql.DB }

// Open opens the index in a directory. It makes a new one if there is none, if the present one is
// damaged, or if it was made from another source.
func Open(ctx context.Context, dir string, from Source) (*Index, error) {
	path := filepath.Join(dir, FileName)
	x, err := open(ctx, path, from)
	if err != nil && !errors.Is(err, errOther) && !Damaged(err) {
		return nil, fmt.Errorf("open search index %s: %w", path, err)
	}
	if err != nil {
		if err = Remove(dir); err == nil {
			x, err = open(ctx, path, from)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make search index %s: %w", path, err)
	}
	return x, nil
}

// errOther means that an index was made from another source, or by another version of lashd.
var errOther = errors.New("the index belongs to another store")

// open makes one attempt to open or make the index.
func open(ctx context.Context, path string, from Source) (*Index, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite gives the files beside it the same mode
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	options := url.Values{
		"_busy_timeout": {"5000"}, "_journal_mode": {"WAL"}, "_txlock": {"immediate"}, "_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"},
		// NORMAL may lose the newest changes in a power loss. They are then made again.
		"_synchronous": {"NORMAL"}, "_pragma": {"trusted_schema(0)", "secure_delete(1)", "journal_size_limit(4194304)", "cache_size(-4000)"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(3)
	x := &Index{db}
	if err := x.prepare(ctx, from); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return x, nil
}

// prepare makes the tables of a new index, and compares the source of an older one.
func (x *Index) prepare(ctx context.Context, from Source) error {
	var tables int
	if err := x.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		return x.inTransaction(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, schema)
			if err == nil {
				_, err = tx.ExecContext(ctx, "INSERT INTO source (version, store_id, epoch) VALUES (?, ?, ?)", version, from.StoreID, from.Epoch)
			}
			return err
		})
	}
	var found Source
	var by int
	err := x.db.QueryRowContext(ctx, "SELECT version, store_id, epoch FROM source").Scan(&by, &found.StoreID, &found.Epoch)
	if sqliteCode(err) == sqlite3.SQLITE_ERROR || errors.Is(err, sql.ErrNoRows) || err == nil && (by != version || found != from) {
		return errOther
	}
	return err
}

// Close closes the index.
func (x *Index) Close() error { return x.db.Close() }

// Exists reports whether a directory has an index.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil
}

// Remove removes the index of a directory, which must not be open.
func Remove(dir string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(filepath.Join(dir, FileName+suffix)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Damaged reports whether an error means that the file is damaged, so that the index must be made
// again.
func Damaged(err error) bool {
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// sqliteCode returns SQLite's primary result code of an error; 0: it is not from SQLite.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// inTransaction runs do in a transaction.
func (x *Index) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// collect reads all rows and closes them.
func collect[T any](rows *sql.Rows, err error, scan func(*sql.Rows, *T) error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// oneLine joins the lines of a text with single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
