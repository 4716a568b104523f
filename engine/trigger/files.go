package trigger

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"lashd/internal/glob"
	"lashd/persistence"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

const (
	fileSettle    = 500 * time.Millisecond // without a change, until an occurrence is recorded; a burst is one occurrence
	maxWatched    = 32                     // directories of triggers
	maxNamed      = 100                    // files in the payload of an occurrence
	fileUnwatched = "no more than %d directories are watched"
)

// fileWatch reports which directories of triggers are to be scanned again. It starts with the first directory. It belongs to the
// loop's goroutine.
type fileWatch struct {
	watcher *watch.Watcher
	dirs    map[string]*watchedDir
}

type watchedDir struct {
	stop     func()
	scanned  bool // at least once, or being scanned for the first time
	scanning bool
	again    bool // scan it again after the scan in progress
}

// rewatch watches the directories of enabled triggers, and no others.
func (l *loop) rewatch() {
	f := &l.files
	wanted := map[string]bool{}
	for _, a := range l.inOrder() {
		switch {
		case a.Source.File == nil || !a.Enabled:
		case len(wanted) == maxWatched && !wanted[a.Source.File.Dir]:
			a.problem = fmt.Sprintf(fileUnwatched, maxWatched)
		default:
			wanted[a.Source.File.Dir] = true
		}
	}
	for dir, d := range f.dirs {
		if !wanted[dir] {
			d.stop()
			delete(f.dirs, dir)
		}
	}
	for dir := range wanted {
		if f.dirs[dir] == nil {
			l.startWatcher()
			f.dirs[dir] = &watchedDir{stop: f.watcher.Watch(dir)}
		}
	}
}

// startWatcher runs the watcher, unless it runs already.
func (l *loop) startWatcher() {
	f := &l.files
	if f.watcher != nil {
		return
	}
	f.dirs = map[string]*watchedDir{}
	f.watcher = watch.New(watch.Config{
		Log: l.Log, Settle: fileSettle, Skip: l.skipDir,
		Limits: watch.Limits{Plugins: maxEntries, Entries: maxEntries, Total: maxEntries, Depth: maxFileDepth},
	})
	l.beside.Go(func() {
		if err := f.watcher.Run(l.life); err != nil {
			l.Log.Warn("files are not watched any more", "error", err)
		}
	})
}

// changes receives the directories to scan; nil while nothing is watched.
func (f *fileWatch) changes() <-chan []string {
	if f.watcher == nil {
		return nil
	}
	return f.watcher.Changes()
}

// problem says why changes in a directory may be noticed late; empty: they are not.
func (f *fileWatch) problem(dir string) string {
	for _, s := range f.watcher.Status() {
		if s.Root == dir {
			return s.Reason
		}
	}
	return ""
}

// scan starts scans of directories beside the loop, one at a time of each.
func (l *loop) scan(dirs []string) {
	for _, dir := range dirs {
		d := l.files.dirs[dir]
		switch {
		case d == nil:
		case d.scanning:
			d.again = true
		default:
			globs, known := l.globs(dir)
			wait := time.Duration(0)
			if known && !d.scanned {
				wait = fileSettle // the first hint comes without a change, and may come amid some
			}
			d.scanned, d.scanning, d.again = true, true, false
			l.beside.Go(func() { l.scanAfter(wait, dir, globs) })
		}
	}
}

func (l *loop) scanAfter(wait time.Duration, dir string, globs map[protocol.TriggerID]glob.Glob) {
	select {
	case <-time.After(wait):
	case <-l.life.Done():
		return
	}
	s := l.scanDir(l.life, dir, globs)
	if l.life.Err() != nil {
		return // it was cut off: files that it did not reach are not gone
	}
	l.post(func(ctx context.Context) { l.scanned(ctx, s) })
}

// globs returns the globs of the triggers of a directory, and whether any of these has the files of an earlier scan.
func (l *loop) globs(dir string) (globs map[protocol.TriggerID]glob.Glob, known bool) {
	globs = map[protocol.TriggerID]glob.Glob{}
	for _, a := range l.triggers {
		if a.Source.File != nil && a.Enabled && a.Source.File.Dir == dir {
			globs[a.ID] = a.glob
			known = known || a.files != nil
		}
	}
	return globs, known
}

// scanned handles the result of a scan.
func (l *loop) scanned(ctx context.Context, s *scan) {
	d := l.files.dirs[s.dir]
	if d == nil {
		return
	}
	d.scanning = false
	problem := l.files.problem(s.dir)
	for id, found := range s.found {
		if a := l.triggers[id]; a != nil && a.Source.File != nil && a.Source.File.Dir == s.dir {
			l.recordChanges(ctx, a, found, cmp.Or(s.problem[id], problem))
		}
	}
	if d.again {
		l.scan([]string{s.dir})
	}
}

// filePayload is the payload of file.changed.
type filePayload struct {
	Dir   string   `json:"dir"`
	Paths []string `json:"paths"`          // below it, sorted
	More  int      `json:"more,omitempty"` // that are not named
}

// recordChanges records an occurrence of the files that differ from the scan before. If it cannot be stored, they differ the next
// time, too.
func (l *loop) recordChanges(ctx context.Context, a *active, found fileStamps, problem string) {
	a.problem = problem
	changed := differing(a.files, found)
	if a.files == nil || len(changed) == 0 {
		a.files = found
		return
	}
	p := filePayload{Dir: a.Source.File.Dir, Paths: changed}
	if n := len(changed); n > maxNamed {
		p.Paths, p.More = changed[:maxNamed], n-maxNamed
	}
	e := event{typ: protocol.TypeFileChanged, sourceKey: string(a.ID), key: uuid.NewString(), payload: encode(p), only: a}
	if err := l.record(ctx, &persistence.Commit{}, e); err != nil {
		l.Log.Error("changed files are not told yet", "trigger", a.ID, "key", a.Key, "error", err)
		return
	}
	a.files = found
}

// differing returns the paths that are not the same in both, sorted.
func differing(before, after fileStamps) (paths []string) {
	for p, stamp := range after {
		if was, ok := before[p]; !ok || was != stamp {
			paths = append(paths, p)
		}
	}
	for p := range maps.Keys(before) {
		if _, ok := after[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}
