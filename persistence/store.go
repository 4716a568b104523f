// Package persistence stores all data of lashd in one SQLite file in WAL mode with synchronous=FULL. One writer goroutine makes
// all changes and groups commits into transactions. Reads use a small pool of read-only connections. A commit that Commit has
// acknowledged survives a crash of the process or the system, and a power loss. State components are opaque bytes to this package.
package persistence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Config says where a store lies. The caller holds the lock of the directory for as long as the store is open.
type Config struct {
	Dir        string       // private to the user; created with mode 0700
	Log        *slog.Logger // required
	Progress   func(string) // told of work that may take over a second, such as a migration; may be nil
	Durability string       // FULL (the default), NORMAL or OFF; reported by Durability, meant for tests
}

// Store is an open database: what reads it, and the one goroutine that changes it. Its methods are safe for concurrent use.
type Store struct {
	*Reader
	*writer
	cfg    Config
	def    definition
	cutOff []string // records of backups that were at work when the last user was killed
}

// Facts are what a store says of itself.
type Facts struct {
	StoreID string // of this database, and of every backup of it
	Epoch   int64  // another random number whenever history may differ from what clients have seen, so that old cursors are told apart
	Secret  string // signs what is given out to be brought back, and is told to nobody
}

// Names in the data directory.
const (
	fileName  = "lashd.db"
	blobsName = "blobs"
)

// Open prepares the database in cfg.Dir: it creates or migrates it, checks it if it was not closed properly, and reads it back. It
// starts no goroutine: Run serves the writes, and checks a small database first. A database of a newer schema is refused with
// ErrNewerSchema, one whose tables are others with ErrOtherSchema, a directory whose database or log is gone with ErrMissing; nothing
// is changed then. A copy, and a database that lost commits, gets a new epoch. On a full disk the space that is kept for that is given
// up.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	return openAs(ctx, cfg, current)
}

func openAs(ctx context.Context, cfg Config, def definition) (*Store, error) {
	if cfg.Durability == "" {
		cfg.Durability = "FULL"
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	ballast := &ballast{path: filepath.Join(cfg.Dir, "lashd.ballast")}
	s, err := openWith(ctx, cfg, def, ballast)
	if errors.Is(err, ErrFull) && ballast.giveUp() {
		cfg.Log.Error(fullDisk, "error", err)
		s, err = openWith(ctx, cfg, def, ballast)
	}
	return s, err
}

func openWith(ctx context.Context, cfg Config, def definition, ballast *ballast) (*Store, error) {
	s := &Store{cfg: cfg, def: def, writer: &writer{
		condition: &condition{log: cfg.Log, ballast: ballast},
		path:      filepath.Join(cfg.Dir, fileName), blobs: newBlobFiles(filepath.Join(cfg.Dir, blobsName)),
		requests: make(chan *request, groupLimit), ended: make(chan struct{}), look: make(chan struct{}, 1),
	}}
	err := s.open(ctx)
	if err == nil {
		return s, nil
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = named(ErrFull, err)
	}
	return nil, errors.Join(fmt.Errorf("open store %s: %w", s.path, err), s.witness.close(), s.closePools())
}

func (s *Store) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // what can't be cancelled can't be interrupted while it waits for a lock
	defer cancel()
	there, err := survey(s.cfg.Dir)
	if err == nil {
		err = there.check()
	}
	if err == nil {
		err = s.createFile()
	}
	if err != nil {
		return err
	}
	found, err := preflight(ctx, s.path, s.def.version)
	if err != nil {
		return err
	}
	if err := there.lost(ctx, s.path, found); err != nil {
		return err
	}
	if fileSize(s.path) == 0 {
		if err := layOut(ctx, s.path); err != nil {
			return err
		}
	}
	if s.db, err = openPool(s.path, writerOptions(s.cfg.Durability), 1); err != nil {
		return err
	}
	if s.stmts, err = prepare(ctx, s.db); err != nil {
		return err
	}
	if err := s.prepareSchema(ctx, found); err != nil {
		return err
	}
	pool, err := openReadPool(s.path, s.cfg.Durability, s.stop)
	if err != nil {
		return err
	}
	s.Reader = newReader(pool, s.writer.blobs)
	if err := s.checkUnclean(ctx, found); err != nil {
		return err
	}
	if s.cutOff, err = recordedPartials(s.cfg.Dir); err != nil {
		return err
	}
	if s.meta, err = readMeta(ctx, s.stmts.conn); err != nil {
		return err
	}
	if err := s.settleEpoch(ctx, there, found.version == 0); err != nil {
		return err
	}
	return s.watchFiles()
}

// createFile makes the database file before SQLite does, so that it and the files beside it are private.
func (s *Store) createFile() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncDir(s.cfg.Dir))
}

// Facts tells the store's id and epoch.
func (s *Store) Facts() Facts { return s.meta.facts }

// Rollback is nil, or a loss of commits that nobody has acknowledged yet.
func (s *Store) Rollback() *Rollback { return s.meta.rollback }

// Durability is the synchronous mode in use; each connection was asked for it when it was made.
func (s *Store) Durability() string { return s.cfg.Durability }

// Dir is where the store lies.
func (s *Store) Dir() string { return s.cfg.Dir }

// Sizes are the bytes of the database and of its log of recent commits.
func (s *Store) Sizes() (db, wal int64) {
	return fileSize(s.path), fileSize(s.path + "-wal")
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Close folds the log into the database and closes it. Run must have returned. A store that stopped writing after an
// I/O error is left as it is: closing it properly could lose what its log still holds.
func (s *Store) Close() error {
	err := s.stopped()
	if errors.Is(err, ErrPoisoned) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if errors.Is(err, ErrCorrupt) {
		return errors.Join(s.witness.close(), s.closePools())
	}
	s.count(ctx)
	s.fold(ctx, "TRUNCATE")
	s.stop(ErrClosed)
	err = s.closePools()
	if err == nil {
		err = s.witness.sealClosed()
	}
	return errors.Join(err, s.witness.close())
}

func (s *Store) closePools() error {
	var errs []error
	if s.Reader != nil {
		errs = append(errs, s.pool.close())
	}
	if s.stmts != nil {
		errs = append(errs, s.stmts.close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}
