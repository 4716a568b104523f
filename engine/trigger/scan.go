package trigger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"lashd/internal/glob"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// Limits of what is scanned.
const (
	maxEntries   = 100_000 // of one directory, all below it included
	maxFiles     = 20_000  // of one directory that a trigger's glob matches
	maxFileDepth = 32
	fileTooMany  = "there are more than %d files in %s: what is beyond is not watched"
	gitDirectory = ".git"
)

var errTooMany = errors.New("too many files")

// fileStamps are files by their paths below a directory, with slashes.
type fileStamps map[string]watch.Stamp

// scan is the result of a scan of a directory, for all triggers that watch it.
type scan struct {
	dir     string
	globs   map[protocol.TriggerID]glob.Glob
	found   map[protocol.TriggerID]fileStamps
	problem map[protocol.TriggerID]string
	entries int
}

// currentFiles returns the files that a source watches, as they are now.
func (c *Config) currentFiles(ctx context.Context, f *protocol.FileSource) (fileStamps, error) {
	g, err := glob.Compile(f.Glob)
	if err != nil {
		return nil, err
	}
	s := c.scanDir(ctx, f.Dir, map[protocol.TriggerID]glob.Glob{"": g})
	return s.found[""], context.Cause(ctx)
}

// scanDir finds the files that globs match, without following links. It takes files that it cannot read for missing.
func (c *Config) scanDir(ctx context.Context, dir string, globs map[protocol.TriggerID]glob.Glob) *scan {
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
			s.problem[id] = fmt.Sprintf(fileTooMany, maxEntries, dir)
		}
	}
	return s
}

// skipDir tells whether no file in a directory is watched: the directories of git and of lashd itself.
func (c *Config) skipDir(dir string) bool {
	return filepath.Base(dir) == gitDirectory || dir == c.StateDir
}

// add notes a file for the triggers whose glob matches it.
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
