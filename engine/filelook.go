package engine

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
	began := filepoint.Now()
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

// compare tells what became of files that were read. One that nobody knew and that is of the same tick of the clock as the look before
// counts as new, although git may have ignored it then: what a tool writes at once would not be undone otherwise.
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
	p := s.parts()
	for len(p.read)+len(p.left)+len(p.changes) > 0 {
		if err := w.commit(ctx, p.next()); err != nil {
			return err
		}
	}
	return nil
}

// seenParts is what was seen and is not stored yet, by what it belongs to.
type seenParts struct {
	read    []persistence.WorkspaceFile
	left    []string
	copies  map[protocol.Digest]persistence.FileCopy
	changes map[string][]persistence.FileChange // by path
}

func (s seen) parts() *seenParts {
	p := &seenParts{read: s.read, left: s.left, copies: map[protocol.Digest]persistence.FileCopy{}, changes: map[string][]persistence.FileChange{}}
	for _, c := range s.copies {
		p.copies[c.Digest] = c
	}
	for _, c := range s.changes {
		p.changes[c.Path] = append(p.changes[c.Path], c)
	}
	return p
}

// next takes as much as goes into one commit: rows of files, with their copies and changes.
func (p *seenParts) next() persistence.FileCommit {
	read, left := p.read[:min(len(p.read), fileRows)], p.left[:min(len(p.left), fileRows)]
	p.read, p.left = p.read[len(read):], p.left[len(left):]
	c := persistence.FileCommit{Index: read, Gone: left}
	for _, f := range read {
		if k, ok := p.copies[f.Digest]; ok {
			c.Copies = append(c.Copies, k)
			delete(p.copies, f.Digest)
		}
		c.Changes = append(c.Changes, p.changes[f.Path]...)
		delete(p.changes, f.Path)
	}
	for _, path := range left {
		c.Changes = append(c.Changes, p.changes[path]...)
		delete(p.changes, path)
	}
	if len(p.read)+len(p.left) == 0 { // the rest is of what was announced
		c.Changes = append(c.Changes, slices.Concat(slices.Collect(maps.Values(p.changes))...)...)
		clear(p.changes)
	}
	return c
}

// news tells whether files are others than the store knows, beside their times.
func (w *workspace) news(read []persistence.WorkspaceFile) bool {
	return slices.ContainsFunc(read, func(f persistence.WorkspaceFile) bool {
		was, known := w.known.Get(f.Path)
		return !known || filepoint.Changed(&was, &f) || was.Problem != f.Problem
	})
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
