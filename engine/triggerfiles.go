package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"lashd/internal/glob"
	"lashd/persistence"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"

	"github.com/google/uuid"
)

const (
	fileSettle    = 500 * time.Millisecond // without a change, until it is told; a burst is one occurrence
	maxWatched    = 32                     // directories of triggers
	maxEntries    = 100_000                // of one, all below it included
	maxFiles      = 20_000                 // of one that a trigger's glob fits
	maxFileDepth  = 32
	maxFilesTold  = 100 // with one occurrence
	gitDirectory  = ".git"
	fileTooMany   = "there are more than %d files in %s: what is beyond is not watched"
	fileUnwatched = "no more than %d directories are watched"
)

// fileStamps are files by their paths below a directory, with slashes.
type fileStamps map[string]watch.Stamp

// fileWatch tells which directories of triggers are to be looked at again. It begins with the first that there is. It belongs
// to the goroutine of the triggers.
type fileWatch struct {
	watcher *watch.Watcher
	dirs    map[string]*watchedDir
}

type watchedDir struct {
	stop    func()
	looked  bool // somebody has, at least once
	looking bool // somebody does
	again   bool // once that is done
}

// rewatch watches what triggers that are at work want watched, and nothing else.
func (t *triggers) rewatch() {
	f := &t.files
	wanted := map[string]bool{}
	for _, w := range t.inOrder() {
		switch {
		case w.Source.File == nil || !w.Enabled:
		case len(wanted) == maxWatched && !wanted[w.Source.File.Dir]:
			w.problem = fmt.Sprintf(fileUnwatched, maxWatched)
		default:
			wanted[w.Source.File.Dir] = true
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
			f.begin(t)
			f.dirs[dir] = &watchedDir{stop: f.watcher.Watch(dir)}
		}
	}
}

// begin runs the watcher, unless it runs.
func (f *fileWatch) begin(t *triggers) {
	if f.watcher != nil {
		return
	}
	f.dirs = map[string]*watchedDir{}
	f.watcher = watch.New(watch.Config{
		Log: t.eng.Log, Settle: fileSettle, Skip: t.eng.skipDir,
		Limits: watch.Limits{Plugins: maxEntries, Entries: maxEntries, Total: maxEntries, Depth: maxFileDepth},
	})
	t.beside.Go(func() {
		if err := f.watcher.Run(t.life); err != nil {
			t.eng.Log.Warn("files are not watched any more", "error", err)
		}
	})
}

// skipDir tells whether nothing in a directory concerns anybody: what git keeps, and what lashd does.
func (e *Engine) skipDir(dir string) bool {
	return filepath.Base(dir) == gitDirectory || dir == e.StateDir
}

// changes are the directories to look at again; nil while nothing is watched.
func (f *fileWatch) changes() <-chan []string {
	if f.watcher == nil {
		return nil
	}
	return f.watcher.Changes()
}

// hindrance is why changes in a directory may be told late; empty: they are not.
func (f *fileWatch) hindrance(dir string) string {
	for _, s := range f.watcher.Status() {
		if s.Root == dir {
			return s.Reason
		}
	}
	return ""
}

// look looks at directories beside the triggers, at each once at a time.
func (t *triggers) look(dirs []string) {
	for _, dir := range dirs {
		d := t.files.dirs[dir]
		switch {
		case d == nil:
		case d.looking:
			d.again = true
		default:
			globs, known := t.globs(dir)
			wait := time.Duration(0)
			if known && !d.looked {
				wait = fileSettle // the first hint comes without a change, and may come amid some
			}
			d.looked, d.looking, d.again = true, true, false
			t.beside.Go(func() {
				if pause(t.life, wait) != nil {
					return
				}
				s := t.eng.scan(t.life, dir, globs)
				if t.life.Err() != nil {
					return // it was cut off: what it did not come to is not gone
				}
				t.tell(func(ctx context.Context) { t.looked(ctx, s) })
			})
		}
	}
}

// globs are those of the triggers that want to know of a directory, and whether any of them knows what was there before.
func (t *triggers) globs(dir string) (globs map[protocol.TriggerID]glob.Glob, known bool) {
	globs = map[protocol.TriggerID]glob.Glob{}
	for _, w := range t.known {
		if w.Source.File != nil && w.Enabled && w.Source.File.Dir == dir {
			globs[w.ID] = w.glob
			known = known || w.seen != nil
		}
	}
	return globs, known
}

// looked takes what there is in a directory now.
func (t *triggers) looked(ctx context.Context, s *scan) {
	d := t.files.dirs[s.dir]
	if d == nil {
		return
	}
	d.looking = false
	hindrance := t.files.hindrance(s.dir)
	for id, found := range s.found {
		if w := t.known[id]; w != nil && w.Source.File != nil && w.Source.File.Dir == s.dir {
			t.compare(ctx, w, found, cmp.Or(s.problem[id], hindrance))
		}
	}
	if d.again {
		t.look([]string{s.dir})
	}
}

// filePayload is what comes with file.changed.
type filePayload struct {
	Dir   string   `json:"dir"`
	Paths []string `json:"paths"`          // below it, sorted
	More  int      `json:"more,omitempty"` // that are not named
}

// compare makes an occurrence of what is not as it was. If that cannot be stored, it is not as it was the next time either.
func (t *triggers) compare(ctx context.Context, w *trigger, found fileStamps, problem string) {
	w.problem = problem
	changed := differing(w.seen, found)
	if w.seen == nil || len(changed) == 0 {
		w.seen = found
		return
	}
	p := filePayload{Dir: w.Source.File.Dir, Paths: changed}
	if n := len(changed); n > maxFilesTold {
		p.Paths, p.More = changed[:maxFilesTold], n-maxFilesTold
	}
	h := happening{typ: protocol.TypeFileChanged, sourceKey: string(w.ID), key: uuid.NewString(), payload: encode(p), only: w}
	if _, err := t.record(ctx, &persistence.Commit{}, h); err != nil {
		t.eng.Log.Error("changed files are not told yet", "trigger", w.ID, "key", w.Key, "error", err)
		return
	}
	w.seen = found
}

// differing are the paths that are not the same in both, sorted.
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

// scan is a look at a directory, for all that want something of it.
type scan struct {
	dir     string
	globs   map[protocol.TriggerID]glob.Glob
	found   map[protocol.TriggerID]fileStamps
	problem map[protocol.TriggerID]string
	entries int
}

// firstLook is what a glob fits now.
func (e *Engine) firstLook(ctx context.Context, f *protocol.FileSource) (fileStamps, error) {
	g, err := glob.Compile(f.Glob)
	if err != nil {
		return nil, err
	}
	s := e.scan(ctx, f.Dir, map[protocol.TriggerID]glob.Glob{"": g})
	return s.found[""], context.Cause(ctx)
}

// scan looks at files, without following links. What cannot be read is not there.
func (e *Engine) scan(ctx context.Context, dir string, globs map[protocol.TriggerID]glob.Glob) *scan {
	s := &scan{dir: dir, globs: globs, found: map[protocol.TriggerID]fileStamps{}, problem: map[protocol.TriggerID]string{}}
	for id := range globs {
		s.found[id] = fileStamps{}
	}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil && entry != nil && entry.IsDir():
			return fs.SkipDir
		case err != nil:
			return nil
		case entry.IsDir() && name != dir && e.skipDir(name):
			return fs.SkipDir
		}
		if s.entries++; s.entries > maxEntries {
			return errTooMany
		}
		if entry.Type().IsRegular() {
			s.file(name, entry)
		}
		return nil
	})
	if errors.Is(err, errTooMany) {
		for id := range globs {
			s.problem[id] = fmt.Sprintf(fileTooMany, maxEntries, dir)
		}
	}
	return s
}

var errTooMany = errors.New("too many files")

// file keeps a file for those whose glob it fits.
func (s *scan) file(name string, entry fs.DirEntry) {
	rel, err := filepath.Rel(s.dir, name)
	if err != nil {
		return
	}
	rel = path.Clean(filepath.ToSlash(rel))
	var stamp *watch.Stamp
	for id, g := range s.globs {
		if !g.Match(rel) {
			continue
		}
		if stamp == nil {
			info, err := entry.Info()
			if err != nil { // it is gone
				return
			}
			stamp = new(watch.StampOf(info))
		}
		if len(s.found[id]) >= maxFiles {
			s.problem[id] = fmt.Sprintf(fileTooMany, maxFiles, s.dir)
			continue
		}
		s.found[id][rel] = *stamp
	}
}
