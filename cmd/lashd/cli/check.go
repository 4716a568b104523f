package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/diagnosis"
	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/socket"
)

// checkCommand implements lashd check, which lash doctor runs. It opens the database, so no daemon may run.
type checkCommand struct {
	console.InJSON
	Fix bool `help:"Accept a data loss: continue with an older database, or move the files of a missing one aside."`
}

// Help is shown by --help.
func (checkCommand) Help() string {
	return `Verifies the checksum of every stored record. The check changes nothing, and needs a stopped daemon. lash doctor runs it and
checks the rest of the installation, too.

--fix accepts a data loss that the check reported. It deletes nothing:
  - If the database is older than the last one seen, --fix acknowledges that.
  - If the database is missing, --fix moves the remaining files to lashd-lost-TIME in the data directory. The next start creates a
    new database.
To recover the data instead, read docs/recovery.md first.

Exit codes: 0 no problems, 1 a problem, or a check that could not run.

Example: lashd check`
}

// Run checks the database and prints the results.
func (c checkCommand) Run(ctx context.Context, e *daemon.Environment) error {
	s := &storeCheck{Diagnosis: &diagnosis.Diagnosis{Version: daemon.Version, DataDir: e.Home, Healthy: true}, fix: c.Fix}
	s.lockAndOpen(ctx, e)
	if err := s.Print(c.JSON); err != nil {
		return err
	}
	return s.Result()
}

// storeCheck checks a database that no daemon uses.
type storeCheck struct {
	*diagnosis.Diagnosis
	fix bool // accept a loss
}

// lockAndOpen checks the database. It holds the lock of the data directory, so that no daemon can start during the check.
func (d *storeCheck) lockAndOpen(ctx context.Context, e *daemon.Environment) {
	if _, err := os.Stat(e.Home); errors.Is(err, fs.ErrNotExist) {
		d.Note("directory", e.Home+" does not exist yet; the first lash run creates it", nil, "")
		return
	}
	lock, err := socket.Hold(e.Home) // the lock keeps a daemon from starting during the check
	if held, ok := errors.AsType[*socket.HeldError](err); ok {
		d.Note("lock", "", held, heldRemedy(held, e)+" (the database was not checked)")
		return
	}
	if !d.Note("directory", e.Home+" is private", err, notLocked(err)) {
		return
	}
	defer lock.Release()
	if d.Note("filesystem", "local", checkLocal(e), "move the data directory to a local disk") {
		d.openDatabase(ctx, e)
	}
}

// heldRemedy says what to do if another process holds the lock, which may be a
// daemon on another socket.
func heldRemedy(held *socket.HeldError, e *daemon.Environment) string {
	if held.Socket != "" && held.Socket != e.Socket {
		return "omit --socket and LASHD_SOCKET, or set them to the socket of that daemon"
	}
	return "wait until that process answers, or stop it"
}

// notLocked says what to do about a data directory that cannot be locked.
func notLocked(err error) string {
	if errors.Is(err, syscall.ENOSPC) {
		return "free disk space"
	}
	return "follow the message; other users could read or replace the stored data"
}

// openDatabase checks the database without changing it, and then accepts a loss if
// --fix was given. The caller holds the lock. A rollback is accepted only if the
// database is otherwise intact.
func (d *storeCheck) openDatabase(ctx context.Context, e *daemon.Environment) {
	in, err := persistence.Inspect(ctx, persistence.Config{Dir: e.Home, Log: e.Log})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Note("database", "does not exist yet", nil, "")
		return
	case d.fix && errors.Is(err, persistence.ErrMissing):
		d.setAside(e.Home, err)
		return
	case err != nil:
		d.Note("database", "", err, remedy(err, e.Home))
		return
	}
	lost, whole := in.Rollback(), d.verify(ctx, e, in)
	if err := in.Close(); err != nil {
		d.Note("database", "", err, remedy(err, e.Home))
	}
	switch {
	case lost == nil:
	case d.fix && whole:
		d.acknowledge(ctx, e, lost)
	default:
		d.Note("rollback", "", errors.New(lost.Problem), lossRemedy)
	}
}

// lossRemedy says what to do about lost commits.
const lossRemedy = "to recover the newer data, stop lashd and restore the newer copy of the whole data directory; " +
	"to continue with this database, run lash doctor --fix"

// verify checks the contents of the database and reports whether they are intact.
// A database with an older schema is not checked: it has to be migrated first,
// which changes it.
func (d *storeCheck) verify(ctx context.Context, e *daemon.Environment, in *persistence.Inspection) bool {
	if v := in.Older(); v != 0 {
		return d.Note("database", fmt.Sprintf("has schema %d; the next start migrates it; run doctor again after that", v), nil, "")
	}
	found, err := verify(ctx, in)
	d.Found = &found
	if err == nil && len(found.Problems) > 0 {
		err = fmt.Errorf("%d problems in %d sessions, the first: %s", len(found.Problems), found.Sessions, found.Problems[0])
	}
	return d.Note("database", fmt.Sprintf("%d sessions, %d events and %d files are intact",
		found.Sessions, found.Events, found.Blobs), err, remedy(err, e.Home))
}

// verify checks all records of the database, and that each task's events lead to
// its stored state. Problems are in the report; err means that the check could not
// finish.
func verify(ctx context.Context, in *persistence.Inspection) (persistence.Report, error) {
	progress := console.Begin("verifying the database", "Ctrl-C cancels the check; it changes nothing")
	defer progress.End()
	found, err := in.Verify(ctx, func(done, all int) { progress.Far("%d of %d sessions", done, all) })
	if err != nil {
		return found, err
	}
	wrong, err := in.VerifyTasks(ctx, task.Fold)
	found.Problems = append(found.Problems, wrong...)
	return found, err
}

// setAside moves the remaining files of a missing database, or a log without its
// database, out of the way. Nothing is deleted; the check names the new directory.
func (d *storeCheck) setAside(home string, missing error) {
	move, next := persistence.SetAside, "the next start creates a new database"
	if _, ok := errors.AsType[*persistence.StaleLogError](missing); ok {
		move, next = persistence.SetLogAside, "the next start uses the database without the log"
	}
	into, err := move(home)
	if d.Note("fix", fmt.Sprintf("moved the remaining files to %s; %s", into, next), err, "move the files yourself") {
		d.Note("database", "set aside: "+missing.Error(), nil, "")
	}
}

// acknowledge accepts that the database is older than the last one seen. This
// opens the database for writing.
func (d *storeCheck) acknowledge(ctx context.Context, e *daemon.Environment, lost *persistence.Rollback) {
	store, err := openStore(ctx, e)
	if err == nil {
		err = errors.Join(store.Acknowledge(ctx), store.Close())
	}
	d.Note("fix", "acknowledged: "+lost.Problem, err, remedy(err, e.Home))
}

// remedy says what to do about an error of the database. The daemon adds it to the
// error; doctor prints it below the check.
func remedy(err error, home string) string {
	switch notFile, other := errors.AsType[*persistence.NotFileError](err); {
	case other:
		return "move " + notFile.Path + " out of the data directory, and restore the original file if you have it"
	case errors.Is(err, persistence.ErrNewerSchema):
		return "install a newer lashd"
	case errors.Is(err, persistence.ErrOtherSchema):
		return "run the lashd build that wrote it, or move " + home + " away to start with an empty database"
	case errors.Is(err, persistence.ErrBusy):
		return "close the other program that has the database open, such as a database shell"
	case errors.Is(err, persistence.ErrFull):
		return "free disk space"
	case errors.Is(err, syscall.ENOSPC):
		return "free disk space, or set TMPDIR to a directory with more space; the check needs a copy of the database"
	case errors.Is(err, persistence.ErrMissing):
		return missingRemedy(err)
	}
	return "save a copy of " + home + ", then restore a backup; lashd can read the damaged database but does not write to it"
}

// missingRemedy says what to do about a missing database, or a log without its
// database. Restoring is always possible; --fix gives the data up.
func missingRemedy(err error) string {
	if _, ok := errors.AsType[*persistence.StaleLogError](err); ok {
		return "restore the database that the log belongs to, or run lash doctor --fix to move the log aside and use this database"
	}
	return "restore the missing files or a backup of the whole directory, or run lash doctor --fix to move the remaining files aside " +
		"and start with an empty database"
}

// openStore opens the database and migrates it if needed. The lock of the
// directory must be held.
func openStore(ctx context.Context, e *daemon.Environment) (*persistence.Store, error) {
	return persistence.Open(ctx, persistence.Config{Dir: e.Home, Log: e.Log, Progress: func(s string) { e.Log.Info(s) }})
}
