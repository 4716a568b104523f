package undo

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"lashd/engine/filepoint"
	"lashd/internal/deadline"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

const (
	lookTimeout = 10 * time.Second // after which a turn goes on without a look, before tools and after them
	hangTimeout = 50 * time.Second // after that, the look itself is abandoned: its file system may hang
)

// errLookTimeout is why a file point misses changes.
var errLookTimeout = errors.New("it took too long to look at the files")

// workspace is a directory and what is known of its files. Whoever locks it has it alone until they unlock it.
type workspace struct {
	files  *Files
	root   string
	locked chan struct{} // holds one while somebody has it
	users  int           // guarded by files.mu
	idle   *time.Timer   // guarded by files.mu; unloads it, if nobody uses it meanwhile

	known   *filepoint.Index // as stored, with newer times; nil: not read from the store yet
	step    int64
	last    time.Time                 // when the previous look began, by the clock of files
	first   bool                      // nobody has looked at it before
	points  map[protocol.PointID]bool // whose tools run (true), or ran after the last look (false); guarded by files.mu
	refused error                     // why the workspace cannot be looked at; nil: it can
	until   time.Time                 // how long refused is believed
}

// use returns the workspace of a directory. The caller releases it.
func (f *Files) use(dir string) (*workspace, error) {
	root, err := pathresolve.Existing(dir)
	if err != nil {
		return nil, err
	}
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

// release ends a use. The workspace stays in memory for as long as an idle session does.
func (w *workspace) release() {
	f := w.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.users--; w.users == 0 {
		w.idle = time.AfterFunc(f.cfg.Idle, w.unload)
	}
}

// unload removes the workspace from memory, unless somebody uses it.
func (w *workspace) unload() {
	f := w.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.users == 0 && len(w.locked) == 0 && f.open[w.root] == w { // no second look beside one that hangs
		w.idle.Stop()
		delete(f.open, w.root)
	}
}

// unloadIdle unloads the workspaces that nobody uses.
func (f *Files) unloadIdle() {
	f.mu.Lock()
	idle := slices.Collect(maps.Values(f.open))
	f.mu.Unlock()
	for _, w := range idle {
		w.unload()
	}
}

// lock waits for the workspace.
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

// withLock does work on a locked workspace. Work that takes too long is abandoned, and keeps the lock until it ends: so nobody works
// beside it, and others time out.
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

// mark says of a point whether its tools run, or ran and may have changed files since the last look.
func (w *workspace) mark(id protocol.PointID, running bool) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	w.points[id] = running
}

// marked tells whether the tools of a point run, and whether a look has to come that shows what they did.
func (w *workspace) marked(id protocol.PointID) (running, open bool) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	running, open = w.points[id]
	return running, open
}

// unmark removes points whose changes were found, or are not wanted any more.
func (w *workspace) unmark(points ...protocol.PointID) {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	for _, id := range points {
		delete(w.points, id)
	}
}

// finished are the points whose tools do not run any more: a look that begins now shows all that they did.
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

// inUse tells whether tools of some turn run.
func (w *workspace) inUse() bool {
	w.files.mu.Lock()
	defer w.files.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(w.points)), true)
}
