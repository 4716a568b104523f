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

	"lashd/internal/durable"
)

// Config says where a store is and how it reports. The caller holds the lock of the directory from
// before Open until after Close.
type Config struct {
	Dir        string       // data directory, private to the user; created with mode 0700
	Log        *slog.Logger // required
	Progress   func(string) // called before work that may take over a second, such as a migration; may be nil
	Durability string       // synchronous mode: FULL (the default), NORMAL or OFF; all but FULL are for tests
}

// Store is an open database. It combines the Reader, whose methods any goroutine may call, with the
// writer, which runs on the goroutine of Run. All methods are safe for concurrent use unless their
// comment says otherwise.
//
// Lifecycle: Open, then Run on a goroutine, then Close after Run has returned. Commit works from
// Open on, but its callers wait until Run serves them.
type Store struct {
	*Reader
	*writer
	cfg Config
	def definition
	// abandoned lists the records of backups that were running when an earlier daemon was killed. Run
	// removes their directories.
	abandoned []string
}

// Facts identify a store to its clients.
type Facts struct {
	// StoreID identifies this database and all its backups.
	StoreID string
	// Epoch is a random number that changes whenever history may differ from what clients have
	// seen. A cursor of another epoch is stale.
	Epoch int64
	// Secret is the key that signs tokens which clients hand back. It never leaves the daemon.
	Secret string
}

// Names in the data directory.
const (
	fileName  = "lashd.db"
	blobsName = "blobs"
)

// Open opens the database in cfg.Dir. It creates or migrates the database, and checks it if the
// last daemon did not close it. Open starts no goroutine: Run serves commits, and first checks a
// small database.
//
// Open fails without changing anything if the schema is newer (ErrNewerSchema), if the tables are
// not lashd's (ErrOtherSchema), or if the database or its log is gone (ErrMissing). A copied
// database, or one that lost commits, gets a new epoch. On a full disk Open releases the reserved
// space and tries once more.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	return openAs(ctx, cfg, current)
}

// openAs is Open for any schema definition; tests pass older and newer ones.
func openAs(ctx context.Context, cfg Config, def definition) (*Store, error) {
	if cfg.Durability == "" {
		cfg.Durability = "FULL"
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	ballast := &ballast{path: filepath.Join(cfg.Dir, "lashd.ballast")}
	s, err := openWith(ctx, cfg, def, ballast)
	if errors.Is(err, ErrFull) && ballast.release() {
		cfg.Log.Error(fullDisk, "error", err)
		s, err = openWith(ctx, cfg, def, ballast)
	}
	return s, err
}

// openWith makes one attempt to open the store, and closes what it has opened if the attempt fails.
func openWith(ctx context.Context, cfg Config, def definition, ballast *ballast) (*Store, error) {
	s := &Store{cfg: cfg, def: def, writer: &writer{
		condition: &condition{log: cfg.Log, ballast: ballast},
		path:      filepath.Join(cfg.Dir, fileName), blobs: newBlobFiles(filepath.Join(cfg.Dir, blobsName)),
		changes: &Changes{}, requests: make(chan *request, groupLimit), ended: make(chan struct{}), look: make(chan struct{}, 1),
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

// open runs the steps of Open in an order that matters: it inspects the directory and the file
// header before SQLite opens anything for writing, because closing a SQLite connection can already
// fold the log into the database.
func (s *Store) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // SQLite waits for a lock uninterruptibly unless the context can be cancelled
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
	if err := there.checkLost(ctx, s.path, found); err != nil {
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
	s.Reader.Search.Changes = s.changes
	if err := s.checkUnclean(ctx, found); err != nil {
		return err
	}
	if s.abandoned, err = recordedPartials(s.cfg.Dir); err != nil {
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

// createFile creates the database file before SQLite does, with mode 0600. SQLite gives the files
// beside it the same mode.
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
	return errors.Join(f.Close(), durable.Sync(s.cfg.Dir))
}

// Facts returns the store's id, epoch and secret. They do not change after Open.
func (s *Store) Facts() Facts { return s.meta.facts }

// Rollback returns the loss of commits that the user has not acknowledged, or nil.
func (s *Store) Rollback() *Rollback { return s.meta.rollback }

// Durability returns the synchronous mode. Each connection verified it when it was opened.
func (s *Store) Durability() string { return s.cfg.Durability }

// Dir returns the data directory.
func (s *Store) Dir() string { return s.cfg.Dir }

// Sizes returns the sizes in bytes of the database file and of its write-ahead log.
func (s *Store) Sizes() (db, wal int64) {
	return fileSize(s.path), fileSize(s.path + "-wal")
}

// fileSize returns the size of a file in bytes, or 0 if it does not exist or cannot be read.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Close folds the log into the database and closes all connections. Run must have returned. After
// an I/O error Close does nothing, because closing SQLite properly could lose commits that only the
// log holds. A damaged database is closed without folding.
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

// closePools closes all connections that open has made so far.
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
