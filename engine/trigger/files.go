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

// Limits of file triggers.
const (
	// fileSettle is how long a directory must be without changes before it is scanned, so
	// that a burst of changes becomes one occurrence.
	fileSettle = 500 * time.Millisecond
	// maxWatched is the number of watched directories.
	maxWatched = 32
	// maxNamed is the number of paths in the payload of an occurrence.
	maxNamed      = 100
	fileUnwatched = "not watched: triggers may watch at most %d directories"
)

// fileWatch reports which directories of triggers to scan again. The watcher starts with
// the first directory. The fields belong to the loop's goroutine.
type fileWatch struct {
	watcher *watch.Watcher
	dirs    map[string]*watchedDir
}

// watchedDir is the scan state of one directory.
type watchedDir struct {
	stop func()
	// scanned means that a first scan was started.
	scanned bool
	// scanning means that a scan is in progress.
	scanning bool
	// again asks for another scan after the one in progress.
	again bool
}

// rewatch makes the watched directories those of the enabled triggers. Triggers beyond
// maxWatched directories get a problem instead.
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

// startWatcher starts the watcher if it is not running.
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
			l.Log.Warn("watching files failed; triggers no longer see file changes", "error", err)
		}
	})
}

// changes returns the channel of directories to scan. It is nil, and so blocks, while
// nothing is watched.
func (f *fileWatch) changes() <-chan []string {
	if f.watcher == nil {
		return nil
	}
	return f.watcher.Changes()
}

// problem returns the reason why changes in a directory may be noticed late, or "".
func (f *fileWatch) problem(dir string) string {
	for _, s := range f.watcher.Status() {
		if s.Root == dir {
			return s.Reason
		}
	}
	return ""
}

// scan starts a scan of each directory outside the loop's goroutine. A directory has one
// scan at a time.
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
				wait = fileSettle // the first notification does not wait for a quiet period, so wait here
			}
			d.scanned, d.scanning, d.again = true, true, false
			l.beside.Go(func() { l.scanAfter(wait, dir, globs) })
		}
	}
}

// scanAfter scans a directory after a delay and posts the result to the loop.
func (l *loop) scanAfter(wait time.Duration, dir string, globs map[protocol.TriggerID]glob.Glob) {
	select {
	case <-time.After(wait):
	case <-l.life.Done():
		return
	}
	s := l.scanDir(l.life, dir, globs)
	if l.life.Err() != nil {
		return // the scan is incomplete: files that it did not reach still exist
	}
	l.post(func(ctx context.Context) { l.scanned(ctx, s) })
}

// globs returns the globs of the triggers of a directory. known reports whether any trigger
// has the result of an earlier scan.
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

// scanned records the changes of a finished scan and starts the next one if requested.
// Triggers that were deleted or changed during the scan are skipped.
func (l *loop) scanned(ctx context.Context, s *scan) {
	d := l.files.dirs[s.dir]
	if d == nil {
		return
	}
	d.scanning = false
	problem := l.files.problem(s.dir)
	for id := range s.globs {
		a, problem := l.triggers[id], cmp.Or(s.problem[id], problem)
		if a == nil || a.Source.File == nil || a.Source.File.Dir != s.dir {
			continue
		}
		if found := s.found[id]; found != nil {
			l.recordChanges(ctx, a, found, problem)
		} else {
			a.problem = problem // the files are unknown, not deleted
		}
	}
	if d.again {
		l.scan([]string{s.dir})
	}
}

// filePayload is the payload of file.changed.
type filePayload struct {
	Dir string `json:"dir"`
	// Paths are relative to Dir and sorted. More counts the paths beyond maxNamed.
	Paths []string `json:"paths"`
	More  int      `json:"more,omitempty"`
}

// recordChanges records one occurrence for all files that changed since the trigger's last
// scan. If it cannot be stored, the trigger keeps its old stamps, so the next scan finds
// the same changes again. The first scan of a trigger only sets the base.
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
		l.Log.Error("cannot record changed files; the next scan retries", "trigger", a.ID, "key", a.Key, "error", err)
		return
	}
	a.files = found
}

// differing returns the sorted paths that were added, removed or changed.
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
