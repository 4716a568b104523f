package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"lashd/engine/task"
	"lashd/persistence"
)

// stopDaemon is the advice to stop a daemon that has the database open.
const stopDaemon = "stop the daemon: lashd call shutdown '{\"daemon\":true}'"

// openDatabase checks the database without changing it, and then accepts a loss if
// --fix was given. The caller holds the lock. A rollback is accepted only if the
// database is otherwise intact.
func (d *diagnosis) openDatabase(ctx context.Context, e *environment) {
	in, err := persistence.Inspect(ctx, persistence.Config{Dir: e.home, Log: e.log})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.note("database", "does not exist yet", nil, "")
		return
	case d.fix && errors.Is(err, persistence.ErrMissing):
		d.setAside(e.home, err)
		return
	case err != nil:
		d.note("database", "", err, remedy(err, e))
		return
	}
	lost, whole := in.Rollback(), d.verify(ctx, e, in)
	if err := in.Close(); err != nil {
		d.note("database", "", err, remedy(err, e))
	}
	switch {
	case lost == nil:
	case d.fix && whole:
		d.acknowledge(ctx, e, lost)
	default:
		d.note("rollback", "", errors.New(lost.Problem), lossRemedy)
	}
}

// lossRemedy says what to do about lost commits.
const lossRemedy = "to recover the newer data, stop lashd and restore the newer copy of the whole data directory; " +
	"to continue with this database, run lashd doctor --fix"

// verify checks the contents of the database and reports whether they are intact.
// A database with an older schema is not checked: it has to be migrated first,
// which changes it.
func (d *diagnosis) verify(ctx context.Context, e *environment, in *persistence.Inspection) bool {
	if v := in.Older(); v != 0 {
		return d.note("database", fmt.Sprintf("has schema %d; the next start migrates it; run doctor again after that", v), nil, "")
	}
	found, err := verify(ctx, in)
	d.Found = &found
	if err == nil && len(found.Problems) > 0 {
		err = fmt.Errorf("%d problems in %d sessions, the first: %s", len(found.Problems), found.Sessions, found.Problems[0])
	}
	return d.note("database", fmt.Sprintf("%d sessions, %d events and %d files are intact",
		found.Sessions, found.Events, found.Blobs), err, remedy(err, e))
}

// verify checks all records of the database, and that each task's events lead to
// its stored state. Problems are in the report; err means that the check could not
// finish.
func verify(ctx context.Context, in *persistence.Inspection) (persistence.Report, error) {
	found, err := in.Verify(ctx, progress())
	if err != nil {
		return found, err
	}
	wrong, err := in.VerifyTasks(ctx, task.Fold)
	found.Problems = append(found.Problems, wrong...)
	return found, err
}

// setAside moves the remaining files of a missing database, or a log without its
// database, out of the way. Nothing is deleted; the check names the new directory.
func (d *diagnosis) setAside(home string, missing error) {
	move, next := persistence.SetAside, "the next start creates a new database"
	if _, ok := errors.AsType[*persistence.StaleLogError](missing); ok {
		move, next = persistence.SetLogAside, "the next start uses the database without the log"
	}
	into, err := move(home)
	if d.note("fix", fmt.Sprintf("moved the remaining files to %s; %s", into, next), err, "move the files yourself") {
		d.note("database", "set aside: "+missing.Error(), nil, "")
	}
}

// acknowledge accepts that the database is older than the last one seen. This
// opens the database for writing.
func (d *diagnosis) acknowledge(ctx context.Context, e *environment, lost *persistence.Rollback) {
	store, err := e.openStore(ctx)
	if err == nil {
		err = errors.Join(store.Acknowledge(ctx), store.Close())
	}
	d.note("fix", "acknowledged: "+lost.Problem, err, remedy(err, e))
}

// remedy says what to do about an error of the database. The daemon adds it to the
// error; doctor prints it below the check.
func remedy(err error, e *environment) string {
	switch notFile, other := errors.AsType[*persistence.NotFileError](err); {
	case other:
		return "move " + notFile.Path + " out of the data directory, and restore the original file if you have it"
	case errors.Is(err, persistence.ErrNewerSchema):
		return "install a newer lashd"
	case errors.Is(err, persistence.ErrOtherSchema):
		return "run the lashd build that wrote it, or move " + e.home + " away to start with an empty database"
	case errors.Is(err, persistence.ErrBusy):
		return "close the other program that has the database open, such as a database shell"
	case errors.Is(err, persistence.ErrFull):
		return "free disk space"
	case errors.Is(err, syscall.ENOSPC):
		return "free disk space, or set TMPDIR to a directory with more space; the check needs a copy of the database"
	case errors.Is(err, persistence.ErrMissing):
		return missingRemedy(err)
	}
	return "save a copy of " + e.home + ", then restore a backup; lashd can read the damaged database but does not write to it"
}

// missingRemedy says what to do about a missing database, or a log without its
// database. Restoring is always possible; --fix gives the data up.
func missingRemedy(err error) string {
	if _, ok := errors.AsType[*persistence.StaleLogError](err); ok {
		return "restore the database that the log belongs to, or run lashd doctor --fix to move the log aside and use this database"
	}
	return "restore the missing files or a backup of the whole directory, or run lashd doctor --fix to move the remaining files aside " +
		"and start with an empty database"
}
