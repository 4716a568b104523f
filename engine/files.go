package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lashd/engine/filepoint"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// FileLimits bound what lashd copies of workspaces, to undo what turns do to files. Zero values mean the default.
type FileLimits struct {
	Off      bool  // no file points are made
	FileSize int64 // of one file; a larger one is not copied; default 2 MiB
	Files    int   // of one workspace; one with more has no file points; default 50,000
	Budget   int64 // of all copies on disk; one workspace takes up to half of that, uncompressed; default 1 GiB
}

func (l FileLimits) withDefaults() FileLimits {
	l.FileSize, l.Files, l.Budget = cmp.Or(l.FileSize, 2<<20), cmp.Or(l.Files, 50_000), cmp.Or(l.Budget, 1<<30)
	return l
}

const (
	filePatience = 10 * time.Second // that a turn waits at most, before tools and after them
	fileRows     = 1000             // of one commit
)

// fileUsers is how many may have workspaces at once; who tidies up has all places.
const fileUsers = 1 << 10

// files are the workspaces that are looked at now.
type files struct {
	shelf  *filepoint.Shelf
	places *semaphore.Weighted // of fileUsers
	grown  atomic.Int64        // by how much, since somebody tidied up

	mu   sync.Mutex
	open map[string]*workspace
}

// workspace is what is known of the files of a directory. Who takes it has it alone until he gives it back.
type workspace struct {
	eng   *Engine
	root  string
	taken chan struct{} // holds one while somebody has it
	users int           // guarded by files.mu
	idle  *time.Timer   // likewise: forgets it, if nobody uses it meanwhile

	known   *filepoint.Index // as stored, with newer times; nil: not read from the store yet
	step    int64
	last    time.Time                 // when the look before this one began, by the clock of files
	first   bool                      // nobody has looked at it before
	busy    map[protocol.PointID]bool // points of turns whose tools are at work, or (false) were and are not looked after yet; guarded by files.mu
	refused error                     // why the workspace cannot be looked at; nil: it can
	until   time.Time                 // and until when that is believed
}

// use finds the workspace of a directory, for as long as forgo is not called.
func (e *Engine) use(dir string) (*workspace, error) {
	root, err := pathresolve.Existing(dir)
	if err != nil {
		return nil, err
	}
	e.files.mu.Lock()
	defer e.files.mu.Unlock()
	w := e.files.open[root]
	if w == nil {
		w = &workspace{eng: e, root: root, taken: make(chan struct{}, 1), busy: map[protocol.PointID]bool{}}
		e.files.open[root] = w
	}
	if w.users++; w.idle != nil {
		w.idle.Stop()
	}
	return w, nil
}

// forgo ends a use. What is known of the workspace is kept for the next one, for as long as a session would be that nobody uses.
func (w *workspace) forgo() {
	f := &w.eng.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.users--; w.users == 0 {
		w.idle = time.AfterFunc(w.eng.Idle, w.forget)
	}
}

// forget lets go of what is known, unless somebody uses it.
func (w *workspace) forget() {
	f := &w.eng.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.users == 0 && len(w.taken) == 0 && f.open[w.root] == w { // one that hangs is not looked at beside that
		w.idle.Stop()
		delete(f.open, w.root)
	}
}

// forgetIdle lets go of what is known of workspaces that nobody uses.
func (f *files) forgetIdle() {
	f.mu.Lock()
	idle := slices.Collect(maps.Values(f.open))
	f.mu.Unlock()
	for _, w := range idle {
		w.forget()
	}
}

// take waits for the workspace.
func (w *workspace) take(ctx context.Context) error {
	places := w.eng.files.places
	if places.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	select {
	case w.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		places.Release(1)
		return context.Cause(ctx)
	}
}

func (w *workspace) giveBack() {
	<-w.taken
	w.eng.files.places.Release(1)
}
