package undo

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxRows is how many rows of files one commit has.
const maxRows = 1000

// delta is a change of a file that a look finds; nil is nothing.
type delta struct {
	path          string
	before, after *protocol.FileState
}

// attribution makes the rows of changes that a look finds: whose they are.
type attribution func([]delta) []persistence.FileChange

// timedLook finds what has changed since the previous look, copies it, and stores that with whose changes they are. It fails if that takes
// longer than a turn waits.
func (w *workspace) timedLook(ctx context.Context, catchUp bool, whose attribution) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, errLookTimeout)
	defer cancel()
	_, err := withLock(ctx, w, func() ([]delta, error) { return w.look(ctx, catchUp, whose) })
	return err
}

// look finds what has changed since the previous look, copies it, and stores that with whose changes they are. The first look at a
// workspace finds no changes: all files were there. The caller holds the lock.
func (w *workspace) look(ctx context.Context, catchUp bool, whose attribution) ([]delta, error) {
	if w.refused != nil && time.Now().Before(w.until) {
		return nil, w.refused
	}
	deltas, err := w.lookOnce(ctx, catchUp, whose)
	if many, ok := errors.AsType[*filepoint.TooManyError](err); ok {
		w.refused, w.until = many, time.Now().Add(10*time.Minute) // counting them again before each call would take long
	}
	return deltas, err
}

func (w *workspace) lookOnce(ctx context.Context, catchUp bool, whose attribution) ([]delta, error) {
	if err := w.load(ctx); err != nil {
		return nil, err
	}
	began := filepoint.Now()
	dir, err := w.openDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	finished := w.finished()
	limits := w.files.cfg.Limits
	sight, err := dir.Walk(ctx, w.known, limits.Files, catchUp)
	if err != nil {
		return nil, err
	}
	gone, err := w.missing(dir, &sight)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(sight.News, func(a, b persistence.WorkspaceFile) int { return cmp.Compare(a.Path, b.Path) })
	copies, err := dir.Capture(ctx, sight.News, copier{w.files}, limits.FileSize, limits.Budget/2-sight.Held)
	if err != nil {
		return nil, err
	}
	deltas := append(w.compare(sight), gone...)
	if err = w.storeFindings(ctx, findings{read: sight.News, copies: copies, dropped: sight.Missing, changes: whose(deltas)}); err == nil {
		w.last, w.first = began, false
		w.unmark(finished...)
	}
	return deltas, err
}

// openDir opens the directory of the workspace.
func (w *workspace) openDir() (*filepoint.Workspace, error) {
	return filepoint.Open(w.root, w.files.cfg.StateDir)
}

// load reads what the store knows of the workspace.
func (w *workspace) load(ctx context.Context) error {
	if w.known != nil {
		return nil
	}
	stored, err := w.files.cfg.Store.Files.Workspace(ctx, w.root)
	if err != nil {
		return err
	}
	w.known, w.step, w.first = filepoint.NewIndex(stored.Files), max(w.step, stored.Step), !stored.Known
	return nil
}

// unignores tells whether git may ignore less than before.
func unignores(read []persistence.WorkspaceFile, missing []string) bool {
	return slices.ContainsFunc(missing, filepoint.IsIgnoreFile) ||
		slices.ContainsFunc(read, func(f persistence.WorkspaceFile) bool { return filepoint.IsIgnoreFile(f.Path) })
}

// compare returns the changes of files that were read. An unknown file of the same clock tick as the previous look counts as new, although
// git may have ignored it then: what a tool writes at once would not be undone otherwise.
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
			deltas = append(deltas, delta{now.Path, unknownState(protocol.FileUnreadable), &now.FileState})
		case unignored && now.ChangedNs != 0 && now.ChangedNs < w.last.UnixNano():
			// It is older than the previous look, which did not find it: what git ignores has changed.
			deltas = append(deltas, delta{now.Path, unknownState(protocol.FileIgnored), &now.FileState})
		default:
			deltas = append(deltas, delta{now.Path, nil, &now.FileState})
		}
	}
	return deltas
}

func unknownState(why protocol.FileProblem) *protocol.FileState {
	return &protocol.FileState{Kind: protocol.FileUnknown, Problem: why}
}

// missing returns the changes of files that a walk did not find again: some are gone, others are only left out from now on, and some
// cannot be looked at. A file that came back during the walk is moved to sight.News.
func (w *workspace) missing(dir *filepoint.Workspace, sight *filepoint.Sight) (gone []delta, err error) {
	dropped := sight.Missing[:0]
	for _, p := range sight.Missing {
		there, err := dir.Look(p)
		was, _ := w.known.Get(p)
		switch {
		case errors.Is(err, fs.ErrPermission):
			continue // it stays known as it was
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
		dropped = append(dropped, p)
	}
	sight.Missing = dropped
	return gone, nil
}

// attribute gives changes to all points whose tools ran. Without any, somebody else made them, and they are not stored.
func (w *workspace) attribute(deltas []delta) []persistence.FileChange {
	w.files.mu.Lock()
	points := slices.Collect(maps.Keys(w.points))
	w.files.mu.Unlock()
	return w.changes(deltas, points, false)
}

// changes makes the rows of what one step did to files, for each of some points.
func (w *workspace) changes(deltas []delta, points []protocol.PointID, unsure bool) (all []persistence.FileChange) {
	if len(deltas)*len(points) == 0 {
		return nil
	}
	w.step++
	for _, id := range points {
		for _, d := range deltas {
			body := persistence.FileChangeBody{Before: d.before, After: d.after, Unsure: unsure}
			all = append(all, persistence.FileChange{Point: id, Step: w.step, Path: d.path, FileChangeBody: body})
		}
	}
	return all
}

// findings are what a look has to store.
type findings struct {
	read    []persistence.WorkspaceFile
	copies  []persistence.FileCopy
	dropped []string // paths that are not known any more
	changes []persistence.FileChange
}

// storeFindings stores what a look has found, in several commits if it is much. The row of a path, its changes and its copy are in one commit.
func (w *workspace) storeFindings(ctx context.Context, f findings) error {
	ctx = context.WithoutCancel(ctx)
	if len(f.copies)+len(f.changes)+len(f.dropped) == 0 && !w.differs(f.read) {
		for _, f := range f.read {
			w.known.Put(f)
		}
		return nil
	}
	p := f.parts()
	for len(p.read)+len(p.dropped)+len(p.changes) > 0 {
		if err := w.commit(ctx, p.next()); err != nil {
			return err
		}
	}
	return nil
}

// pendingRows are findings that are not stored yet, by digest and path.
type pendingRows struct {
	read    []persistence.WorkspaceFile
	dropped []string
	copies  map[protocol.Digest]persistence.FileCopy
	changes map[string][]persistence.FileChange
}

func (f findings) parts() *pendingRows {
	p := &pendingRows{read: f.read, dropped: f.dropped, copies: map[protocol.Digest]persistence.FileCopy{}, changes: map[string][]persistence.FileChange{}}
	for _, c := range f.copies {
		p.copies[c.Digest] = c
	}
	for _, c := range f.changes {
		p.changes[c.Path] = append(p.changes[c.Path], c)
	}
	return p
}

// next takes as much as fits into one commit: rows of files, with their copies and changes.
func (p *pendingRows) next() persistence.FileCommit {
	read, dropped := p.read[:min(len(p.read), maxRows)], p.dropped[:min(len(p.dropped), maxRows)]
	p.read, p.dropped = p.read[len(read):], p.dropped[len(dropped):]
	c := persistence.FileCommit{Index: read, Gone: dropped}
	for _, f := range read {
		if k, ok := p.copies[f.Digest]; ok {
			c.Copies = append(c.Copies, k)
			delete(p.copies, f.Digest)
		}
		c.Changes = append(c.Changes, p.changes[f.Path]...)
		delete(p.changes, f.Path)
	}
	for _, path := range dropped {
		c.Changes = append(c.Changes, p.changes[path]...)
		delete(p.changes, path)
	}
	if len(p.read)+len(p.dropped) == 0 { // the rest are announced changes
		c.Changes = append(c.Changes, slices.Concat(slices.Collect(maps.Values(p.changes))...)...)
		clear(p.changes)
	}
	return c
}

// differs tells whether any file differs from what the store knows, other than in its times.
func (w *workspace) differs(read []persistence.WorkspaceFile) bool {
	return slices.ContainsFunc(read, func(f persistence.WorkspaceFile) bool {
		was, known := w.known.Get(f.Path)
		return !known || filepoint.Changed(&was, &f) || was.Problem != f.Problem
	})
}

// commit stores rows, after which they are known.
func (w *workspace) commit(ctx context.Context, c persistence.FileCommit) error {
	c.Workspace = w.root
	if _, err := w.files.cfg.Store.Commit(ctx, &persistence.Commit{Files: c, AtMs: time.Now().UnixMilli()}); err != nil {
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
