package persistence

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"
)

// watchEvery is how often the files of an idle store are looked at: often enough that a person learns soon of a file that was
// removed, rarely enough for an idle daemon.
const watchEvery = 2 * time.Second

// MovedError says that a file of the database was moved, removed or replaced while it was open. Nothing is written any more, as nobody
// would find it again. It is ErrPoisoned: the process should exit without closing the store.
type MovedError struct {
	Path  string
	Saved bool // all acknowledged commits are in the database file, at its place
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

// openFile is a file that SQLite has open. It is looked at by its name only: to open and close it would drop SQLite's locks.
type openFile struct {
	path string
	info fs.FileInfo
}

func lookAt(path string) (openFile, error) {
	info, err := os.Lstat(path)
	return openFile{path, info}, err
}

// stands tells whether the name still leads to the file.
func (f openFile) stands() bool {
	now, err := os.Lstat(f.path)
	return err == nil && os.SameFile(now, f.info)
}

// watchFiles remembers the files that SQLite has open now.
func (w *writer) watchFiles() (err error) {
	if w.dbFile, err = lookAt(w.path); err != nil {
		return err
	}
	w.wal, err = lookAt(w.path + "-wal")
	return err
}

// checkFiles stops the store if a file of it is not at its place any more. It is the writer's, as the log's commits are saved first if
// only the log is gone. Windows does not let open files go.
func (w *writer) checkFiles(ctx context.Context) error {
	if runtime.GOOS == "windows" || w.dbFile.stands() && w.wal.stands() {
		return nil
	}
	moved := &MovedError{Path: w.dbFile.path}
	if w.dbFile.stands() {
		moved.Path, moved.Saved = w.wal.path, w.rescueLog(ctx) == nil
	}
	w.stop(moved)
	return moved
}

// rescueLog folds a log that has no name any more into the database, as the next process would not find it. Another program that
// has a log there by now may have written to the database: then nothing is folded in.
func (w *writer) rescueLog(ctx context.Context) error {
	if fileSize(w.wal.path) > 0 {
		return fmt.Errorf("%s is another one", w.wal.path)
	}
	w.witness.beforeFold("TRUNCATE")
	if err := w.foldNow(ctx); err != nil {
		w.witness.afterFold(false)
		return err
	}
	w.witness.afterFold(true)
	return nil
}

// Watch looks at the files of the store until ctx is done, and has Run return a MovedError once one is not at its place any more.
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
		default: // it has not looked yet
		}
	}
}
