package persistence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Acknowledge forgets the loss of commits that Rollback tells of. It must not be called while Run runs.
func (w *writer) Acknowledge(ctx context.Context) error {
	_, err := w.stmts.conn.ExecContext(ctx, "DELETE FROM meta WHERE name = ?", metaRollback)
	if err == nil {
		w.meta.rollback = nil
	}
	return classify(err)
}

// SetAside moves what is left of a store into a new directory inside of dir, which it returns, so that the next Open begins a new
// store. It deletes nothing. The caller holds the lock of dir.
func SetAside(dir string) (string, error) {
	return setAside(dir, func(name string) bool {
		return strings.HasPrefix(name, fileName) || name == witnessName || name == blobsName ||
			strings.HasPrefix(name, "lashd-schema") && strings.HasSuffix(name, ".backup.db")
	})
}

// SetLogAside moves the log of a database that was replaced into a new directory inside of dir, which it returns, so that the next Open
// takes the new database without it. The caller holds the lock of dir.
func SetLogAside(dir string) (string, error) {
	return setAside(dir, func(name string) bool { return name == fileName+"-wal" || name == fileName+"-shm" })
}

// setAside moves the database first: half of it done, Open still finds that the database is missing. Names are in order.
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
	return into, errors.Join(syncDir(into), syncDir(dir))
}
