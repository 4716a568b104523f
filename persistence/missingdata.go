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

// MissingError says that a directory held a store whose data is gone. Nothing in the directory was changed. It is ErrMissing.
type MissingError struct {
	Dir    string
	What   string   // is missing
	Traces []string // of the store, with what they are
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s in %s, although %s shows that a store was here; nothing was changed", e.What, e.Dir, strings.Join(e.Traces, ", "))
}

// Is implements errors.Is.
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// StaleLogError says that the database was replaced while the log of the one before is still beside it; to open the two together
// would mix them. Nothing in the directory was changed. It is ErrMissing, as the database of the log is.
type StaleLogError struct{ Dir string }

func (e *StaleLogError) Error() string {
	return fmt.Sprintf("%s in %s was replaced, but %[1]s-wal still belongs to the previous database; nothing was changed", fileName, e.Dir)
}

// Is implements errors.Is.
func (e *StaleLogError) Is(target error) bool { return target == ErrMissing }

// NotFileError says that something else is where a store keeps a file. Nothing in the directory was changed.
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

// checkFiles refuses a directory in which something else is where a store keeps a file.
func checkFiles(dir string) error {
	for _, name := range []string{fileName, fileName + "-wal", fileName + "-shm", witnessName, "lashd.ballast"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return &NotFileError{Path: path, Mode: info.Mode()}
		}
	}
	return nil
}

// remains are what a data directory shows before SQLite looks at it.
type remains struct {
	dir      string
	seen     witnessed
	file     fileStamp // zero: there is none
	log      fileStamp // likewise
	traces   []string  // of a store, other than the database file
	database bool      // the file is there and has something in it
}

// survey looks at a data directory. It opens neither the database nor its log.
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

func stampIfThere(path string) (fileStamp, error) {
	s, err := stampOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileStamp{}, nil
	}
	return s, err
}

// list names what shows that there was a store. The lock, lashd.log and config.toml do not: they come before the first database.
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

func hasEntries(dir string) bool {
	entries, err := os.ReadDir(dir)
	return len(entries) > 0 || err != nil // what cannot be read is not taken for empty
}

// check refuses a directory that held a store which is not there any more, and a log of another database.
func (r *remains) check() error {
	switch {
	case !r.database && len(r.traces) > 0:
		return r.missing(fileName + " is missing")
	case r.database && r.seen.staleLog(r.file, r.log, bootID()):
		return &StaleLogError{r.dir}
	}
	return nil
}

// lost refuses a database that lost all it had. It is asked before the database is opened for writing: to close it again would fold
// its log in.
func (r *remains) lost(ctx context.Context, path string, found preview) error {
	switch {
	case r.seen.StoreID == "":
		return nil
	case found.version == 0:
		return r.missing(fmt.Sprintf("%s has no tables: its log, %[1]s-wal, is missing", fileName))
	case r.log.size == 0 || found.version != SchemaVersion: // to close it changes nothing; or it is migrated first
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
	if how, why := r.seen.judge(facts.present(*r), bootID()); how == rolled {
		return checkEmptied(ctx, db, *r, why)
	}
	return nil
}

func (r *remains) missing(what string) error {
	return &MissingError{Dir: r.dir, What: what, Traces: r.traces}
}
