package persistence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lashd/internal/durable"
)

// Acknowledge deletes the record of lost commits that Rollback returns. Do not call it while Run
// runs: both use the writer's connection.
func (w *writer) Acknowledge(ctx context.Context) error {
	_, err := w.stmts.conn.ExecContext(ctx, "DELETE FROM meta WHERE name = ?", metaRollback)
	if err == nil {
		w.meta.rollback = nil
	}
	return classify(err)
}

// SetAside moves the files of a store into a new directory inside dir, and returns that directory.
// The next Open then creates a new store. Nothing is deleted. The caller holds the lock of dir.
func SetAside(dir string) (string, error) {
	return setAside(dir, func(name string) bool {
		return strings.HasPrefix(name, fileName) || name == witnessName || name == blobsName ||
			strings.HasPrefix(name, "lashd-schema") && strings.HasSuffix(name, ".backup.db")
	})
}

// SetLogAside moves the log of a replaced database into a new directory inside dir, and returns
// that directory. The next Open then uses the new database without the log. The caller holds the
// lock of dir.
func SetLogAside(dir string) (string, error) {
	return setAside(dir, func(name string) bool { return name == fileName+"-wal" || name == fileName+"-shm" })
}

// setAside moves the files that is selects, the database first. If it stops halfway, Open still
// reports that the database is missing.
func setAside(dir string, is func(name string) bool) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	into, err := os.MkdirTemp(dir, "lashd-lost-"+time.Now().UTC().Format("20060102-150405")+"-*") // mode 0700
	if err != nil {
		return "", err
	}
	for _, first := range []bool{true, false} {
		for _, e := range entries {
			if !is(e.Name()) || (e.Name() == fileName) != first {
				continue
			}
			if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(into, e.Name())); err != nil {
				return "", err
			}
		}
	}
	return into, errors.Join(durable.Sync(into), durable.Sync(dir))
}
