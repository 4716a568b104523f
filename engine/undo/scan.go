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

// maxRows is the number of file rows in one commit. It bounds how long a commit blocks the writer.
const maxRows = 1000

// delta is one change that a scan found. A nil state means that nothing exists at the path.
type delta struct {
	path          string
	before, after *protocol.FileState
}

// attribution turns the changes of a scan into rows for the file points that made them.
type attribution func([]delta) []persistence.FileChange

// timedLook is look with the lock of the workspace and a limit of lookTimeout, the time that a turn
// waits for a scan.
func (w *workspace) timedLook(ctx context.Context, catchUp bool, whose attribution) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, errLookTimeout)
	defer cancel()
	_, err := withLock(ctx, w, func() ([]delta, error) { return w.look(ctx, catchUp, whose) })
	return err
}

// look scans the workspace, copies the files that changed since the previous scan, and stores the
// changes under the file points that whose returns. With catchUp it also retries files that earlier
// scans skipped for lack of time or room. The first scan of a workspace reports no changes, because
// there is nothing to compare with. The caller holds the lock.
func (w *workspace) look(ctx context.Context, catchUp bool, whose attribution) ([]delta, error) {
	if w.refused != nil && time.Now().Before(w.until) {
		return nil, w.refused
	}
	deltas, err := w.lookOnce(ctx, catchUp, whose)
	if many, ok := errors.AsType[*filepoint.TooManyError](err); ok {
		w.refused, w.until = many, time.Now().Add(10*time.Minute) // counting the files before each tool call would take too long
	}
	return deltas, err
}

// lookOnce is look without the memory of a refusal. The scan state changes only after the findings
// are stored, so a failed scan is repeated in full.
func (w *workspace) lookOnce(ctx context.Context, catchUp bool, whose attribution) ([]delta, error) {
	if err := w.load(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
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
		w.known.Accept()
		w.unmark(finished...)
	}
	return deltas, err
}

// openDir opens the directory of the workspace. The caller closes it.
func (w *workspace) openDir() (*filepoint.Workspace, error) {
	return filepoint.Open(w.root, w.files.cfg.StateDir)
}

// load reads the index of the workspace from the store. It does nothing if the index is in memory.
// The caller holds the lock.
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

// compare returns the changes of the files that a scan read. An unknown file counts as new, and undo
// deletes it, unless the previous scan ignored its path and the file could have existed then. The
// kernel never stamps a file later than time.Now, but it may stamp a file a few milliseconds earlier:
// a file that a tool writes just after that scan counts as ignored too, so undo keeps it.
func (w *workspace) compare(sight filepoint.Sight) (deltas []delta) {
	if w.first {
		return nil
	}
	for i := range sight.News {
		now := &sight.News[i]
		was, known := w.known.Get(now.Path)
		switch {
		case known && filepoint.Changed(&was, now):
			deltas = append(deltas, delta{now.Path, &was.FileState, &now.FileState})
		case known:
		case w.known.Hidden(now.Path):
			deltas = append(deltas, delta{now.Path, unknownState(protocol.FileUnreadable), &now.FileState})
		case now.ChangedNs != 0 && now.ChangedNs <= w.last.UnixNano() && w.known.WasIgnored(now.Path, false):
			deltas = append(deltas, delta{now.Path, unknownState(protocol.FileIgnored), &now.FileState})
		default:
			deltas = append(deltas, delta{now.Path, nil, &now.FileState})
		}
	}
	return deltas
}

// unknownState is the earlier state of a file that previous scans could not see.
func unknownState(why protocol.FileProblem) *protocol.FileState {
	return &protocol.FileState{Kind: protocol.FileUnknown, Problem: why}
}

// missing returns the changes of known files that a scan did not find. A file may be deleted, newly
// ignored, or unreadable. Newly ignored files leave the index without a change. A file that
// appeared again during the scan moves to sight.News.
func (w *workspace) missing(dir *filepoint.Workspace, sight *filepoint.Sight) (gone []delta, err error) {
	dropped := sight.Missing[:0]
	for _, p := range sight.Missing {
		there, err := dir.Look(p)
		was, _ := w.known.Get(p)
		switch {
		case errors.Is(err, fs.ErrPermission):
			continue // keep its last known state
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

// attribute assigns changes to every point whose tools ran. Without such a point another program
// made the changes, and they are not stored.
func (w *workspace) attribute(deltas []delta) []persistence.FileChange {
	w.files.mu.Lock()
	points := slices.Collect(maps.Keys(w.points))
	w.files.mu.Unlock()
	return w.changes(deltas, points, false)
}

// changes returns the rows for one step of changes, one for each point and path, and advances the
// step counter. unsure marks changes that may be the work of another program.
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

// findings is the result of a scan, ready to store.
type findings struct {
	read    []persistence.WorkspaceFile
	copies  []persistence.FileCopy
	dropped []string // paths that are not known any more
	changes []persistence.FileChange
}

// storeFindings stores the result of a scan, in several commits if it is large. One commit always
// contains the row of a path together with its changes and its copy, so a crash between commits
// loses no pair. It ignores cancellation of ctx.
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

// pendingRows holds the findings that are not stored yet: copies by digest, changes by path.
type pendingRows struct {
	read    []persistence.WorkspaceFile
	dropped []string
	copies  map[protocol.Digest]persistence.FileCopy
	changes map[string][]persistence.FileChange
}

// parts indexes the findings so that next can cut them into commits.
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

// next removes and returns the rows of one commit: at most maxRows files and maxRows dropped paths,
// with their copies and changes.
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
	if len(p.read)+len(p.dropped) == 0 { // changes of announced paths have no file row
		c.Changes = append(c.Changes, slices.Concat(slices.Collect(maps.Values(p.changes))...)...)
		clear(p.changes)
	}
	return c
}

// differs reports whether any file differs from its stored row in more than its times.
func (w *workspace) differs(read []persistence.WorkspaceFile) bool {
	return slices.ContainsFunc(read, func(f persistence.WorkspaceFile) bool {
		was, known := w.known.Get(f.Path)
		return !known || filepoint.Changed(&was, &f) || was.Problem != f.Problem
	})
}

// commit stores rows and then updates the index in memory.
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
