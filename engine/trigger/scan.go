package trigger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"lashd/engine/param"
	"lashd/internal/glob"
	"lashd/internal/pathresolve"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// Limits of a scan.
const (
	// maxEntries is the number of entries of one directory with all directories below it.
	maxEntries = 100_000
	// maxFiles is the number of files of one directory that match the glob of a trigger.
	maxFiles = 20_000
	// maxFileDepth is the number of nested directories that the watcher enters.
	maxFileDepth = 32
	fileTooMany  = "only the first %d matching files in %s are watched; use a narrower glob"
	// entriesTooMany counts directories and files that no glob matches, too.
	entriesTooMany = "only the first %d files and directories in %s are scanned; watch a smaller directory"
	gitDirectory   = ".git"
)

// errTooMany ends a scan after maxEntries.
var errTooMany = errors.New("too many files")

// fileStamps maps paths below a directory, with slashes, to size and time stamps.
type fileStamps map[string]watch.Stamp

// scan is the result of one scan of a directory for all triggers that watch it. found has
// an entry for each trigger, problem for those whose files are incomplete.
type scan struct {
	dir     string
	globs   map[protocol.TriggerID]glob.Glob
	found   map[protocol.TriggerID]fileStamps
	problem map[protocol.TriggerID]string
	// entries counts the entries so far, for maxEntries.
	entries int
}

// currentFiles returns the present files of a source. It returns an error if ctx ends.
func (c *Config) currentFiles(ctx context.Context, f *protocol.FileSource) (fileStamps, error) {
	g, err := glob.Compile(f.Glob)
	if err != nil {
		return nil, err
	}
	s := c.scanDir(ctx, f.Dir, map[protocol.TriggerID]glob.Glob{"": g})
	return s.found[""], context.Cause(ctx)
}

// scanDir finds the files that match globs, without following links. Unreadable files and
// directories count as missing. Beyond maxEntries it stops and sets a problem for each
// trigger. It finds nothing, and sets a problem, if a link leads elsewhere. It stops early when ctx
// ends; the caller discards that result.
func (c *Config) scanDir(ctx context.Context, dir string, globs map[protocol.TriggerID]glob.Glob) *scan {
	s := &scan{dir: dir, globs: globs, found: map[protocol.TriggerID]fileStamps{}, problem: map[protocol.TriggerID]string{}}
	if err := pathresolve.Elsewhere(dir); err != nil {
		for id := range globs {
			s.problem[id] = err.Error()
		}
		return s
	}
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
		case entry.IsDir() && name != dir && c.skipDir(name):
			return fs.SkipDir
		}
		if s.entries++; s.entries > maxEntries {
			return errTooMany
		}
		if entry.Type().IsRegular() {
			s.add(name, entry)
		}
		return nil
	})
	if errors.Is(err, errTooMany) {
		for id := range globs {
			s.problem[id] = fmt.Sprintf(entriesTooMany, maxEntries, dir)
		}
	}
	return s
}

// skipDir reports whether a directory is never watched: .git and the state directory of
// lashd.
func (c *Config) skipDir(dir string) bool {
	return filepath.Base(dir) == gitDirectory || dir == c.StateDir || dir == param.Where(c.StateDir)
}

// add stores a file for each trigger whose glob matches it.
func (s *scan) add(name string, entry fs.DirEntry) {
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
			if err != nil { // the file was deleted
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
