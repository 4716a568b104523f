package persistence

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"
)

// watchEvery is how often Watch checks the files of an idle store. It is short enough that the user
// soon learns of a removed file, and long enough for an idle daemon.
const watchEvery = 2 * time.Second

// MovedError means that a file of the database was moved, removed or replaced while it was open.
// The store stops writing, because the next process would not find new commits. It is ErrPoisoned:
// the process should exit without closing the store.
type MovedError struct {
	Path  string
	Saved bool // all acknowledged commits are in the database file, which is still in place
}

func (e *MovedError) Error() string {
	what := e.Path + " was moved, removed or replaced while it was open"
	if e.Saved {
		return what + "; all commits are stored in the database; restart lashd"
	}
	return what + "; put the old file back before you restart lashd"
}

// Is implements errors.Is.
func (e *MovedError) Is(target error) bool { return target == ErrPoisoned }

// openFile is a file that SQLite has open. It is examined only by its name, because opening and
// closing the file would release SQLite's locks.
type openFile struct {
	path string
	info fs.FileInfo
}

// statFile records the file at a path.
func statFile(path string) (openFile, error) {
	info, err := os.Lstat(path)
	return openFile{path, info}, err
}

// inPlace reports whether the path still leads to the same file.
func (f openFile) inPlace() bool {
	now, err := os.Lstat(f.path)
	return err == nil && os.SameFile(now, f.info)
}

// watchFiles records the files that SQLite has open now. Open calls it last.
func (w *writer) watchFiles() (err error) {
	if w.dbFile, err = statFile(w.path); err != nil {
		return err
	}
	w.wal, err = statFile(w.path + "-wal")
	return err
}

// checkFiles stops the store with a MovedError if one of its files is no longer in place. If only
// the log is gone, it first saves the log's commits in the database. Only the writer may call it.
// Windows does not allow moving open files.
func (w *writer) checkFiles(ctx context.Context) error {
	if runtime.GOOS == "windows" || w.dbFile.inPlace() && w.wal.inPlace() {
		return nil
	}
	moved := &MovedError{Path: w.dbFile.path}
	if w.dbFile.inPlace() {
		moved.Path, moved.Saved = w.wal.path, w.rescueLog(ctx) == nil
	}
	w.stop(moved)
	return moved
}

// rescueLog folds a log without a name into the database, because the next process would not find
// the log. It does nothing if another program has created a log in its place and may have written
// to the database.
func (w *writer) rescueLog(ctx context.Context) error {
	if fileSize(w.wal.path) > 0 {
		return fmt.Errorf("another log has the name %s", w.wal.path)
	}
	w.witness.beforeFold("TRUNCATE")
	if err := w.foldNow(ctx); err != nil {
		w.witness.afterFold(false)
		return err
	}
	w.witness.afterFold(true)
	return nil
}

// Watch has the writer check its files every watchEvery until ctx is done. If one is no longer in
// place, Run returns a MovedError.
func (w *writer) Watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case w.look <- struct{}{}:
		default: // an earlier check is still pending
		}
	}
}
