package undo

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"lashd/engine/filepoint"
	"lashd/internal/deadline"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

const (
	// lookTimeout is how long a turn waits for a scan, before tools and after them. Then it
	// continues, and its point cannot be undone.
	lookTimeout = 10 * time.Second
	// hangTimeout is the additional time after which the scan itself is abandoned: its file system
	// may hang.
	hangTimeout = 50 * time.Second
)

// errLookTimeout is the cause of a point with unknown changes.
var errLookTimeout = errors.New("scanning the files took too long")

// workspace is a directory together with the index of its files. All sessions in the directory
// share one workspace. The fields from known on belong to the goroutine that holds the lock, except
// points.
type workspace struct {
	files *Files
	// root is the directory. Its path has no links.
	root string
	// locked is a mutex that can be waited for with a context: it holds one value while locked.
	locked chan struct{}
	// users is the number of uses that are not released. Guarded by files.mu.
	users int
	// idle unloads the workspace when it fires. Guarded by files.mu.
	idle *time.Timer

	// known is the stored index, with newer times. It is nil until it is read from the store.
	known *filepoint.Index
	// step numbers the scans that found changes, in order.
	step int64
	// last is the start time of the previous scan.
	last time.Time
	// first means that the workspace was never scanned before.
	first bool
	// points has the points whose tools run (true), or ran after the last scan (false).
	// Guarded by files.mu.
	points map[protocol.PointID]bool
	// refused is the reason why the workspace is not scanned, until the time until. It is nil if it
	// can be.
	refused error
	until   time.Time
}

// use returns the workspace of a session's directory and loads it if necessary. The caller calls
// release. The directory must exist, and no link may lead elsewhere from its path.
func (f *Files) use(dir string) (*workspace, error) {
	if err := pathresolve.CheckWorkspace(dir); err != nil {
		return nil, err
	}
	root := filepath.Clean(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.open[root]
	if w == nil {
		w = &workspace{files: f, root: root, locked: make(chan struct{}, 1), points: map[protocol.PointID]bool{}}
		f.open[root] = w
	}
	if w.users++; w.idle != nil {
		w.idle.Stop()
	}
	return w, nil
}

// release ends one use. An unused workspace stays in memory for Config.Idle, as long as an idle
// session.
func (w *workspace) release() {
	f := w.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.users--; w.users == 0 {
		w.idle = time.AfterFunc(f.cfg.Idle, w.unload)
	}
}

// unload removes the workspace from memory if it is unused and unlocked.
func (w *workspace) unload() {
	f := w.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.users == 0 && len(w.locked) == 0 && f.open[w.root] == w { // a scan that hangs keeps the lock: do not start a second one
		w.idle.Stop()
		delete(f.open, w.root)
	}
}

// unloadIdle unloads all unused workspaces.
func (f *Files) unloadIdle() {
	f.mu.Lock()
	idle := slices.Collect(maps.Values(f.open))
	f.mu.Unlock()
	for _, w := range idle {
		w.unload()
	}
}

// lock waits for the workspace until ctx ends, and then returns the cause of ctx. It also takes a
// unit of Files.places, so Tidy waits until unlock.
func (w *workspace) lock(ctx context.Context) error {
	places := w.files.places
	if places.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	select {
	case w.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		places.Release(1)
		return context.Cause(ctx)
	}
}

func (w *workspace) unlock() {
	<-w.locked
	w.files.places.Release(1)
}

// withLock runs work on the locked workspace. Work that exceeds lookTimeout plus hangTimeout is
// abandoned and continues in the background. It keeps the lock until it ends, so later callers time
// out instead of working beside it.
func withLock[T any](ctx context.Context, w *workspace, work func() (T, error)) (T, error) {
	if err := w.lock(ctx); err != nil {
		var zero T
		return zero, err
	}
	return deadline.Do(context.WithoutCancel(ctx), lookTimeout+hangTimeout, errLookTimeout, func(context.Context) (T, error) {
		defer w.unlock()
		return work()
	})
}

// mark records that the tools of a point are running, or have run since the last scan.
func (w *workspace) mark(id protocol.PointID, running bool) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	w.points[id] = running
}

// marked reports whether the tools of a point are running, and whether a scan still has to record
// their changes.
func (w *workspace) marked(id protocol.PointID) (running, open bool) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	running, open = w.points[id]
	return running, open
}

// unmark removes points whose changes are recorded or no longer needed.
func (w *workspace) unmark(points ...protocol.PointID) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for _, id := range points {
		delete(w.points, id)
	}
}

// finished returns the points whose tools have ended. A scan that starts now sees all of their
// changes.
func (w *workspace) finished() (points []protocol.PointID) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for id, running := range w.points {
		if !running {
			points = append(points, id)
		}
	}
	return points
}

// inUse reports whether tools of any turn are running in the workspace.
func (w *workspace) inUse() bool {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(w.points)), true)
}
