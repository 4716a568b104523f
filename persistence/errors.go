package persistence

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"lashd/rpc/protocol"
)

// Errors of the package. Test for them with errors.Is: returned errors wrap them with the session,
// the row or SQLite's own message. Except after ErrPoisoned, a failed commit has changed nothing.
var (
	ErrNotFound        = errors.New("not found")
	ErrExists          = errors.New("already exists")
	ErrDeleted         = errors.New("the session was deleted; its id is never reused")
	ErrFenced          = errors.New("the session changed during the request; read it again") // head revision, seq, turn state or incarnation
	ErrReceiptConflict = errors.New("the idempotency key was used for another request")
	ErrNotRetained     = errors.New("the node is not reachable from a leaf or a pin")
	ErrBudget          = errors.New("the commit is too large")
	ErrInvalid         = errors.New("the commit cannot be stored")
	ErrFull            = errors.New("the disk is full; the database cannot grow")
	ErrBusy            = errors.New("the database is locked by another process")
	ErrPoisoned        = errors.New("the database stopped after an I/O error; restart lashd and retry")
	ErrCorrupt         = errors.New("the database is damaged; run lash doctor")
	ErrNewerSchema     = errors.New("the database was written by a newer version of lashd")
	ErrOtherSchema     = errors.New("the database has unexpected tables; a development build of lashd wrote it, or another program changed it")
	ErrMissing         = errors.New("the database, or a part of it, is missing")
	ErrClosed          = errors.New("the store is closed")
)

// errDamaged is ErrCorrupt found by SQLite itself. Unlike a damaged row it concerns the whole file,
// so it stops all writing.
var errDamaged = fmt.Errorf("%w", ErrCorrupt)

// NotFoundError names the missing object: a session, turn, node (on the active path), input,
// decision and so on. It is ErrNotFound.
type NotFoundError struct {
	What string
	ID   string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no %s %s", e.What, e.ID) }

// Is implements errors.Is.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// DamagedRowError means that a row differs from what was stored, by its checksum or hash chain. It
// is ErrCorrupt. Other rows remain readable and writable.
type DamagedRowError struct {
	Table   string
	Row     string             // its primary key
	Session protocol.SessionID // owner of the row; empty: none, or unknown
}

func (e *DamagedRowError) Error() string {
	owner := ""
	if e.Session != "" {
		owner = fmt.Sprintf("session %s: ", e.Session)
	}
	return fmt.Sprintf("%srow %s of table %s is damaged; run lash doctor, or restore a backup", owner, e.Row, e.Table)
}

// Is implements errors.Is.
func (e *DamagedRowError) Is(target error) bool { return target == ErrCorrupt }

// StaleBranchError means that Commit.Requires is not on the active path. Leaf is the current leaf.
type StaleBranchError struct{ Leaf protocol.NodeID }

func (e *StaleBranchError) Error() string {
	return fmt.Sprintf("the required ancestor is not on the active branch; its leaf is %s", e.Leaf)
}

// classify maps errors of SQLite to the errors of this package, and keeps the original in the
// chain. Codes: https://www.sqlite.org/rescode.html.
func classify(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return &existsError{err}
	case sqlite3.SQLITE_IOERR_SHMSIZE: // the log's index could not grow; nothing was written yet
		return named(ErrFull, err)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return named(ErrFull, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return named(ErrBusy, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return named(ErrPoisoned, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return named(errDamaged, err)
	}
	return err
}

// existsError is ErrExists without SQLite's message, because clients see it.
type existsError struct{ cause error }

func (e *existsError) Error() string { return ErrExists.Error() }

func (e *existsError) Unwrap() []error { return []error{ErrExists, e.cause} }

// named wraps err with the sentinel name unless it already has it.
func named(name, err error) error {
	if errors.Is(err, name) {
		return err
	}
	return fmt.Errorf("%w: %w", name, err)
}
