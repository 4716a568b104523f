// Package undo undoes what tools do to the files of workspaces.
//
// Around the tools of a turn it looks at the workspace, and stores the changes and copies of what was changed as a file point of the turn.
// A rewind brings files back to what they were before a point, and is a file point itself. Files is safe for concurrent use; a workspace is
// locked by whoever looks at it or rewinds it, and by no one else meanwhile.
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

// Config is what Files needs. All fields are required; zero values of Limits mean the default.
type Config struct {
	Store    *persistence.Store
	StateDir string // where copies lie; it is never looked at
	Limits   Limits
	Idle     time.Duration // after which a workspace that nobody uses leaves memory
	Log      *slog.Logger
}

// Limits bound the copies of files that lashd keeps for undo. Zero values mean the default.
type Limits struct {
	Off      bool  // make no file points
	FileSize int64 // of one file; a larger one is not copied; default 2 MiB
	Files    int   // of one workspace; one with more has no file points; default 50,000
	Budget   int64 // of all copies on disk; one workspace takes up to half of that, uncompressed; default 1 GiB
}

func (l Limits) withDefaults() Limits {
	l.FileSize, l.Files, l.Budget = cmp.Or(l.FileSize, 2<<20), cmp.Or(l.Files, 50_000), cmp.Or(l.Budget, 1<<30)
	return l
}

// ErrInUse means that tools work in a workspace, so that its files cannot be rewound.
var ErrInUse = errors.New("tools of a session are at work in this workspace; wait for their turn, or interrupt it")

// ConflictError means that a rewind would lose something, or cannot bring back everything: force does what can be done.
type ConflictError struct{ Files []protocol.FileRewind }

func (e *ConflictError) Error() string {
	f := e.Files[0]
	why := cmp.Or(string(f.Conflict), string(f.Unkept))
	return fmt.Sprintf("%d files stand against it, %s (%s) among them; force brings back what can be brought back, whatever is lost", len(e.Files), f.Path, why)
}

// UnrestorableError means that files cannot be brought back, as not all that was done to them is known.
type UnrestorableError struct {
	Point  protocol.PointID // that is not known; empty: it is what there is now, and force does not help
	Reason string
}

func (e *UnrestorableError) Error() string {
	if e.Point == "" {
		return "the files cannot be looked at: " + e.Reason
	}
	return fmt.Sprintf("not all that was done to files in %s is known: %s; force brings back what is known", e.Point, e.Reason)
}

// maxUsers is how many may have locked workspaces at once. Tidying takes all places.
const maxUsers = 1 << 10

// Files are the workspaces in use, and the copies of their files.
type Files struct {
	cfg    Config
	shelf  *filepoint.Shelf
	places *semaphore.Weighted // of maxUsers
	grown  atomic.Int64        // bytes of copies since the last tidying

	mu   sync.Mutex
	open map[string]*workspace
}

// New makes Files. It starts nothing.
func New(cfg Config) *Files {
	cfg.Limits = cfg.Limits.withDefaults()
	return &Files{
		cfg: cfg, shelf: filepoint.NewShelf(cfg.StateDir, cfg.Limits.Budget/packShare),
		open: map[string]*workspace{}, places: semaphore.NewWeighted(maxUsers),
	}
}

// Close unloads all workspaces. Nobody uses one any more.
func (f *Files) Close() error {
	f.unloadIdle()
	return f.shelf.Close()
}
