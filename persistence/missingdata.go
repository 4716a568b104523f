package persistence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MissingError means that a directory held a store whose data is gone. Open has changed nothing in
// the directory. It is ErrMissing.
type MissingError struct {
	Dir    string
	What   string   // what is missing, as a clause
	Traces []string // files that show that a store was here, each with its meaning
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s in %s, although %s shows that a store was here; nothing was changed", e.What, e.Dir, strings.Join(e.Traces, ", "))
}

// Is implements errors.Is.
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// StaleLogError means that the database was replaced while the log of the previous one is still
// beside it. Opening them together would corrupt the database. Open has changed nothing. It is
// ErrMissing, because the log's own database is missing.
type StaleLogError struct{ Dir string }

func (e *StaleLogError) Error() string {
	return fmt.Sprintf("%s in %s was replaced, but %[1]s-wal still belongs to the previous database; nothing was changed", fileName, e.Dir)
}

// Is implements errors.Is.
func (e *StaleLogError) Is(target error) bool { return target == ErrMissing }

// NotFileError means that a path of the store is not a regular file. Open has changed nothing.
type NotFileError struct {
	Path string
	Mode fs.FileMode
}

func (e *NotFileError) Error() string {
	what := "not a file"
	if e.Mode.IsDir() {
		what = "a directory, not a file"
	}
	return fmt.Sprintf("%s is %s; nothing was changed", e.Path, what)
}

// checkFiles rejects a directory in which a path of the store is not a regular file.
func checkFiles(dir string) error {
	for _, name := range []string{fileName, fileName + "-wal", fileName + "-shm", witnessName, "lashd.ballast"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return &NotFileError{Path: path, Mode: info.Mode()}
		}
	}
	return nil
}

// remains describes a data directory as found before SQLite opens anything in it.
type remains struct {
	dir      string
	seen     witnessed // content of the witness; zero: none
	file     fileStamp // database file; zero: it does not exist
	log      fileStamp // write-ahead log; zero: it does not exist
	traces   []string  // signs of a store other than the database file
	database bool      // the database file exists and is not empty
}

// survey inspects a data directory. It opens neither the database nor its log.
func survey(dir string) (r remains, err error) {
	r.dir = dir
	if err := checkFiles(dir); err != nil {
		return r, err
	}
	if r.seen, err = readWitness(filepath.Join(dir, witnessName)); err != nil {
		return r, err
	}
	path := filepath.Join(dir, fileName)
	if r.file, err = stampIfThere(path); err != nil {
		return r, err
	}
	if r.log, err = stampIfThere(path + "-wal"); err != nil {
		return r, err
	}
	r.database = r.file.size > 0
	r.traces, err = r.list()
	return r, err
}

// stampIfThere is stampOf, with a zero stamp for a missing file.
func stampIfThere(path string) (fileStamp, error) {
	s, err := stampOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileStamp{}, nil
	}
	return s, err
}

// list returns the signs that a store was here. The lock, lashd.log and config.toml are none,
// because they exist before the first database.
func (r *remains) list() (traces []string, err error) {
	if r.seen.StoreID != "" {
		traces = append(traces, fmt.Sprintf("%s (of a store with %d commits)", witnessName, r.seen.Commits))
	}
	if r.log.size > 0 {
		traces = append(traces, fmt.Sprintf("%s-wal (%d bytes of recent commits)", fileName, r.log.size))
	}
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		switch {
		case e.Name() == blobsName && hasEntries(filepath.Join(r.dir, blobsName)):
			traces = append(traces, blobsName+"/ (large outputs)")
		case strings.HasPrefix(e.Name(), "lashd-schema") && strings.HasSuffix(e.Name(), ".backup.db"):
			traces = append(traces, e.Name()+" (a backup from before a migration)")
		}
	}
	return traces, err
}

// hasEntries reports whether a directory has entries or cannot be read.
func hasEntries(dir string) bool {
	entries, err := os.ReadDir(dir)
	return len(entries) > 0 || err != nil // an unreadable directory does not count as empty
}

// check rejects a directory whose database is gone, and one whose log belongs to another database.
func (r *remains) check() error {
	switch {
	case !r.database && len(r.traces) > 0:
		return r.missing(fileName + " is missing")
	case r.database && r.seen.staleLog(r.file, r.log, bootID()):
		return &StaleLogError{r.dir}
	}
	return nil
}

// checkLost rejects a database that has lost all its data. Call it before the database is opened for
// writing: closing that connection would fold the log into the database.
func (r *remains) checkLost(ctx context.Context, path string, found preview) error {
	switch {
	case r.seen.StoreID == "":
		return nil
	case found.version == 0:
		return r.missing(fmt.Sprintf("%s has no tables: its log, %[1]s-wal, is missing", fileName))
	case r.log.size == 0 || found.version != SchemaVersion: // closing it changes nothing, or it is migrated first
		return nil
	}
	db, err := openCopy(path, "ro")
	if err != nil {
		return err
	}
	defer db.Close()
	facts, err := readMeta(ctx, db)
	if err != nil {
		return err
	}
	if how, why := r.seen.judge(facts.present(*r), bootID()); how == rolledBack {
		return checkEmptied(ctx, db, *r, why)
	}
	return nil
}

// missing returns a MissingError for this directory.
func (r *remains) missing(what string) error {
	return &MissingError{Dir: r.dir, What: what, Traces: r.traces}
}
