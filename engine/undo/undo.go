// Package undo records and undoes the changes that tools make to the files of workspaces.
//
// Before and after the tools of a turn run, it scans the workspace. It stores the changes, and
// copies of the changed files, as the file point of the turn. A rewind restores files to their
// state before a point, and records its own changes as a file point, so it can be undone as well.
//
// Files is safe for concurrent use. A scan or a rewind locks its workspace; other scans and rewinds
// of that workspace wait.
package undo

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Config configures Files. All fields except Limits are required.
type Config struct {
	Store *persistence.Store
	// StateDir is the daemon's state directory. Copies are stored below it, and scans skip it.
	StateDir string
	Limits   Limits
	// Idle is how long an unused workspace stays in memory.
	Idle time.Duration
	Log  *slog.Logger
}

// Limits bound the file copies that lashd keeps for undo. Zero values mean the default.
type Limits struct {
	// Off disables file points.
	Off bool
	// FileSize is the size in bytes up to which a file is copied. Default: 2 MiB.
	FileSize int64
	// Files is the number of files of one workspace. A larger workspace has no file points.
	// Default: 50,000.
	Files int
	// Budget is the size in bytes of all copies on disk. One workspace takes at most half of it,
	// counted uncompressed. Default: 1 GiB.
	Budget int64
}

func (l Limits) withDefaults() Limits {
	l.FileSize, l.Files, l.Budget = cmp.Or(l.FileSize, 2<<20), cmp.Or(l.Files, 50_000), cmp.Or(l.Budget, 1<<30)
	return l
}

// ErrInUse means that tools are running in the workspace, so its files cannot be rewound.
var ErrInUse = errors.New("a session is running tools in this workspace; wait for its turn to end, or interrupt it")

// ConflictError means that a rewind would lose data or cannot restore every file. Files lists only
// the conflicting ones and is not empty. With Force the rewind restores everything that it can.
type ConflictError struct{ Files []protocol.FileRewind }

func (e *ConflictError) Error() string {
	f := e.Files[0]
	text := "undo changed nothing because of conflicts: " + f.Path + " " + conflictText(f)
	if more := len(e.Files) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// conflictText says what is wrong with a conflicting file, to follow its path.
func conflictText(f protocol.FileRewind) string {
	switch f.Conflict {
	case "":
		return "has no stored copy (" + string(f.Unkept) + ")"
	case protocol.ConflictChanged:
		return "has changed since"
	case protocol.ConflictShared:
		return "may have been changed by another session"
	case protocol.ConflictUnsure:
		return "may have been changed by another program"
	case protocol.ConflictNotKept:
		return "would be lost, because lashd has no copy of it"
	}
	return "(" + string(f.Conflict) + ")"
}

// UnrestorableError means that files cannot be restored because not all changes to them are known.
type UnrestorableError struct {
	// Point is the point with unknown changes. Empty: the present files cannot be read, and Force
	// does not help.
	Point  protocol.PointID
	Reason string
}

func (e *UnrestorableError) Error() string {
	if e.Point == "" {
		return "cannot scan the workspace: " + e.Reason
	}
	return fmt.Sprintf("the file changes of %s are not completely known: %s; use force to restore the known ones", e.Point, e.Reason)
}

// maxUsers is the number of workspaces that can be locked at once. Tidy acquires all of them.
const maxUsers = 1 << 10

// Files holds the workspaces in use and the copies of their files. A workspace is loaded on first
// use and unloaded after Config.Idle. One Files serves all sessions of the daemon.
type Files struct {
	cfg   Config
	shelf *filepoint.Shelf
	// places has maxUsers units. A locked workspace holds one, Tidy holds all.
	places *semaphore.Weighted
	// grown counts the bytes of copies since the last tidying.
	grown atomic.Int64

	mu sync.Mutex
	// open maps resolved directories to loaded workspaces. mu guards it.
	open map[string]*workspace
}

// New returns Files. It starts no goroutines and touches no files.
func New(cfg Config) *Files {
	cfg.Limits = cfg.Limits.withDefaults()
	return &Files{
		cfg: cfg, shelf: filepoint.NewShelf(cfg.StateDir, cfg.Limits.Budget/packShare),
		open: map[string]*workspace{}, places: semaphore.NewWeighted(maxUsers),
	}
}

// Close unloads all workspaces and closes the current pack. No workspace may be in use.
func (f *Files) Close() error {
	f.unloadIdle()
	return f.shelf.Close()
}
