package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lashd/engine/filepoint"
	"lashd/persistence"
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
	last    time.Time                 // when the look before this one began
	first   bool                      // nobody has looked at it before
	busy    map[protocol.PointID]bool // points of turns whose tools are at work, or (false) were and are not looked after yet; guarded by files.mu
	refused error                     // why the workspace cannot be looked at; nil: it can
	until   time.Time                 // and until when that is believed
}

// use finds the workspace of a directory, for as long as forgo is not called.
func (e *Engine) use(dir string) (*workspace, error) {
	root, err := filepath.EvalSymlinks(dir)
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
	if w.users == 0 && f.open[w.root] == w {
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

// errFilesSlow is why a point is made without having looked at everything.
var errFilesSlow = errors.New("it took too long to look at the files")

// delta is a change that a look finds.
type delta struct {
	path          string
	before, after *protocol.FileState
}

// noting says what changes mean for file points.
type noting func([]delta) []persistence.FileChange

// look finds out what has changed since the look before, keeps copies of it, and stores that, with what it means for those whose
// tools are at work. The first look at a workspace finds no changes: all that there is was there. Whoever calls it has taken w.
func (w *workspace) look(ctx context.Context, catchUp bool, note noting) ([]delta, error) {
	if w.refused != nil && time.Now().Before(w.until) {
		return nil, w.refused
	}
	deltas, err := w.lookOnce(ctx, catchUp, note)
	if many, ok := errors.AsType[*filepoint.TooManyError](err); ok {
		w.refused, w.until = many, time.Now().Add(10*time.Minute) // to count them again before each call would take long
	}
	return deltas, err
}

func (w *workspace) lookOnce(ctx context.Context, catchUp bool, note noting) ([]delta, error) {
	if err := w.learn(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	dir, err := filepoint.Open(w.root, w.eng.StateDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	rested := w.resting()
	sight, err := dir.Walk(ctx, w.known, w.eng.Files.Files, catchUp)
	if err != nil {
		return nil, err
	}
	gone, err := w.missing(dir, &sight)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(sight.News, func(a, b persistence.WorkspaceFile) int { return cmp.Compare(a.Path, b.Path) })
	limits := w.eng.Files
	copies, err := dir.Capture(ctx, sight.News, copier{w.eng}, limits.FileSize, limits.Budget/2-sight.Held)
	if err != nil {
		return nil, err
	}
	deltas := append(w.compare(sight), gone...)
	if err = w.keep(ctx, seen{read: sight.News, copies: copies, left: sight.Missing, changes: note(deltas)}); err == nil {
		w.last, w.first = began, false
		w.seenTo(rested)
	}
	return deltas, err
}

// learn reads what the store knows of the workspace.
func (w *workspace) learn(ctx context.Context) error {
	if w.known != nil {
		return nil
	}
	stored, err := w.eng.store.WorkspaceFiles(ctx, w.root)
	if err != nil {
		return err
	}
	w.known, w.step, w.first = filepoint.NewIndex(stored.Files), max(w.step, stored.Step), !stored.Known
	return nil
}

// unignores tells whether git may ignore less than before.
func unignores(read []persistence.WorkspaceFile, left []string) bool {
	return slices.ContainsFunc(left, filepoint.IsIgnoreFile) ||
		slices.ContainsFunc(read, func(f persistence.WorkspaceFile) bool { return filepoint.IsIgnoreFile(f.Path) })
}

// compare tells what became of files that were read.
func (w *workspace) compare(sight filepoint.Sight) (deltas []delta) {
	if w.first {
		return nil
	}
	unignored := unignores(sight.News, sight.Missing)
	for i := range sight.News {
		now := &sight.News[i]
		was, known := w.known.Get(now.Path)
		switch {
		case known && filepoint.Changed(&was, now):
			deltas = append(deltas, delta{now.Path, &was.FileState, &now.FileState})
		case known:
		case w.known.Hidden(now.Path):
			deltas = append(deltas, delta{now.Path, unknown(protocol.FileUnreadable), &now.FileState})
		case unignored && now.ChangedNs != 0 && now.ChangedNs < w.last.UnixNano():
			// It is older than the look before, which did not see it: what git ignores has changed.
			deltas = append(deltas, delta{now.Path, unknown(protocol.FileIgnored), &now.FileState})
		default:
			deltas = append(deltas, delta{now.Path, nil, &now.FileState})
		}
	}
	return deltas
}

func unknown(why protocol.FileProblem) *protocol.FileState {
	return &protocol.FileState{Kind: protocol.FileUnknown, Problem: why}
}

// missing tells what became of files that a walk did not find again: some are gone, others are only left out from now on, and of
// some nobody can tell. What came back while the walk went on is news.
func (w *workspace) missing(dir *filepoint.Workspace, sight *filepoint.Sight) (gone []delta, err error) {
	left := sight.Missing[:0]
	for _, p := range sight.Missing {
		there, err := dir.Look(p)
		was, _ := w.known.Get(p)
		switch {
		case errors.Is(err, fs.ErrPermission):
			continue // it is known as it was when it could be looked at
		case err != nil:
			return nil, err
		case there == nil:
			gone = append(gone, delta{p, &was.FileState, nil})
		case there.Kind == protocol.FileUnknown:
			gone = append(gone, delta{p, &was.FileState, &there.FileState})
		case !w.known.Ignored(p, there.Kind == protocol.FileDirectory):
			sight.News = append(sight.News, *there)
			continue
		}
		left = append(left, p)
	}
	sight.Missing = left
	return gone, nil
}

// seen is what a look has to store.
type seen struct {
	read    []persistence.WorkspaceFile
	copies  []persistence.FileCopy
	left    []string // paths that are not known any more
	changes []persistence.FileChange
}

// keep stores what a look has seen, in parts: what a part says of a path and what that means stand in one commit, with the copies.
func (w *workspace) keep(ctx context.Context, s seen) error {
	ctx = context.WithoutCancel(ctx)
	if len(s.copies)+len(s.changes)+len(s.left) == 0 && !w.news(s.read) {
		for _, f := range s.read {
			w.known.Put(f)
		}
		return nil
	}
	copies := map[protocol.Digest]persistence.FileCopy{}
	for _, c := range s.copies {
		copies[c.Digest] = c
	}
	changes := map[string][]persistence.FileChange{}
	for _, c := range s.changes {
		changes[c.Path] = append(changes[c.Path], c)
	}
	for len(s.read)+len(s.left)+len(changes) > 0 {
		read, left := s.read[:min(len(s.read), fileRows)], s.left[:min(len(s.left), fileRows)]
		s.read, s.left = s.read[len(read):], s.left[len(left):]
		c := persistence.FileCommit{Index: read, Gone: left}
		for _, f := range read {
			if k, ok := copies[f.Digest]; ok {
				c.Copies = append(c.Copies, k)
				delete(copies, f.Digest)
			}
			c.Changes = append(c.Changes, changes[f.Path]...)
			delete(changes, f.Path)
		}
		for _, p := range left {
			c.Changes = append(c.Changes, changes[p]...)
			delete(changes, p)
		}
		if len(s.read)+len(s.left) == 0 { // the rest is of what was announced
			c.Changes = append(c.Changes, slices.Concat(slices.Collect(maps.Values(changes))...)...)
			clear(changes)
		}
		if err := w.commit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// news tells whether files are others than the store knows, beside their times.
func (w *workspace) news(read []persistence.WorkspaceFile) bool {
	return slices.ContainsFunc(read, func(f persistence.WorkspaceFile) bool {
		was, known := w.known.Get(f.Path)
		return !known || filepoint.Changed(&was, &f) || was.Problem != f.Problem
	})
}

// keepCopies stores where copies lie. Nobody tidies up as long as a workspace is taken.
func (w *workspace) keepCopies(ctx context.Context, copies []persistence.FileCopy) error {
	if len(copies) == 0 {
		return nil
	}
	return w.commit(ctx, persistence.FileCommit{Copies: copies})
}

// commit stores a part, and then takes it for known.
func (w *workspace) commit(ctx context.Context, c persistence.FileCommit) error {
	c.Workspace = w.root
	if _, err := w.eng.store.Commit(ctx, &persistence.Commit{Files: c, AtMs: now()}); err != nil {
		return err
	}
	for _, f := range c.Index {
		w.known.Put(f)
	}
	for _, p := range c.Gone {
		w.known.Drop(p)
	}
	return nil
}

// present is what stands at a path now. What a look leaves out is looked at here, and copied if somebody may want it back.
func (w *workspace) present(ctx context.Context, dir *filepoint.Workspace, path string, keep bool) (*protocol.FileState, error) {
	f, err := dir.Look(path)
	if f == nil || err != nil {
		return nil, err
	}
	if was, known := w.known.Get(path); known && filepoint.Same(was, *f) {
		return &was.FileState, nil
	}
	limits := w.eng.Files
	if !keep {
		dir.Read(ctx, f, limits.FileSize)
		return &f.FileState, nil
	}
	one := []persistence.WorkspaceFile{*f}
	copies, err := dir.Capture(ctx, one, copier{w.eng}, limits.FileSize, limits.Budget/2)
	if err == nil {
		err = w.keepCopies(ctx, copies)
	}
	return &one[0].FileState, err
}

// copier keeps copies for filepoint.
type copier struct{ eng *Engine }

func (c copier) Known(ctx context.Context, digests []protocol.Digest) (map[protocol.Digest]bool, error) {
	return c.eng.store.KnownCopies(ctx, digests)
}

func (c copier) Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error) {
	return c.eng.files.shelf.Add(contents)
}

// contentOf reads the copy of a file.
func (e *Engine) contentOf(ctx context.Context, s *protocol.FileState) ([]byte, error) {
	if s == nil || s.Kind != protocol.FileRegular {
		return nil, nil
	}
	if s.Digest == "" {
		return nil, fmt.Errorf("there is no copy: %s", s.Problem)
	}
	c, err := e.store.Copy(ctx, s.Digest)
	if err != nil {
		return nil, err
	}
	data, err := e.files.shelf.Read(c)
	if err != nil { // it may have been moved just now
		if c, err = e.store.Copy(ctx, s.Digest); err == nil {
			data, err = e.files.shelf.Read(c)
		}
	}
	return data, err
}
