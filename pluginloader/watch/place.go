package watch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lashd/internal/pathresolve"
)

// placing finds and watches the directories of a root in one pass. It watches each directory before
// it reads it, so that no entry added in between is missed.
type placing struct {
	limits Limits
	bounds Bounds
	skip   func(string) bool
	notes  *notes
	live   map[string]bool  // paths that fsnotify watches at the start of the pass
	places map[string]names // result: watched directories, with the entries that matter
	news   bool             // result: a directory was not watched before
	beyond string           // result: the first part that exceeds the limits; empty: none
	left   int              // entries that may still be read
}

// root watches a root directory and the plugins in it. A missing root is no error.
func (p *placing) root(dir string) error {
	real, err := p.follow(dir)
	if err != nil || real == "" {
		return err
	}
	if err := p.watch(real); err != nil {
		return err
	}
	plugins, more, err := list(real, p.limits.Plugins)
	if err != nil {
		return p.failed(real, err)
	}
	if more {
		p.cut("%s has more than %d entries", real, p.limits.Plugins)
	}
	for _, e := range plugins {
		if err := p.plugin(filepath.Join(real, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

// plugin watches an entry of the root if it is a directory or a link to one.
func (p *placing) plugin(path string, e fs.DirEntry) error {
	if e.Type() == fs.ModeSymlink {
		real, err := p.follow(path)
		if err != nil || real == "" {
			return err
		}
		return p.tree(real)
	}
	if e.IsDir() && !p.skips(path) {
		return p.tree(path)
	}
	return nil
}

// skips reports whether the configuration ignores a directory.
func (p *placing) skips(dir string) bool { return p.skip != nil && p.skip(dir) }

// follow resolves a path to a directory, or to "" if there is none or it is outside the bounds. It
// watches every name on the way: each may be renamed or linked elsewhere, and a missing one may
// appear.
func (p *placing) follow(path string) (string, error) {
	var stop error // why watching stopped; nil: it did not
	at, info, err := pathresolve.Follow(path, func(dir, name string) error {
		if p.left--; p.left < 0 {
			p.cut("%s leads through too many directories and links", path)
			return errBeyond
		}
		stop = p.name(dir, name)
		return stop
	})
	switch {
	case stop != nil:
		return "", stop
	case err != nil || !info.IsDir():
		return "", nil // no error: the watched names report when the path changes
	case p.bounds.outside(at):
		p.cut("%s leads to %s, which is outside the workspace", path, at)
		return "", nil
	}
	return at, nil
}

// errBeyond stops the resolution of a path that exceeds the limits.
var errBeyond = errors.New("beyond the limits")

// name watches one entry of a directory. It skips directories without read permission, whose
// entries are rarely renamed.
func (p *placing) name(dir, name string) error {
	some, known := p.places[dir]
	if known && (some == nil || some[name]) {
		return nil
	}
	if err := p.add(dir); errors.Is(err, fs.ErrPermission) {
		return nil
	} else if err != nil {
		return p.failed(dir, err)
	}
	if some == nil {
		some = names{}
		p.places[dir] = some
	}
	some[name] = true
	return nil
}

// watch watches all entries of a directory.
func (p *placing) watch(dir string) error {
	if err := p.add(dir); err != nil {
		return p.failed(dir, err)
	}
	p.places[dir] = nil
	return nil
}

// add watches a directory and records whether it is new.
func (p *placing) add(dir string) error {
	news, err := p.notes.add(dir, p.live)
	p.news = p.news || news
	return err
}

// failed returns the errors that force polling. A directory that is gone or unreadable is skipped;
// the others still get events.
func (p *placing) failed(dir string, err error) error {
	switch {
	case vanished(err):
		return nil
	case errors.Is(err, fs.ErrPermission):
		p.cut("%s may not be read", dir)
		return nil
	}
	return err
}

// cut records the first part of the root that exceeds the limits.
func (p *placing) cut(format string, args ...any) {
	if p.beyond == "" {
		p.beyond = fmt.Sprintf(format, args...)
	}
}

// tree watches a directory and everything below it, level by level. If the limits cut it off, the
// upper levels are watched, which matter most.
func (p *placing) tree(top string) error {
	left := min(p.limits.Entries, p.left)
	level := []string{top}
	for depth := 0; len(level) > 0; depth++ {
		if depth > p.limits.Depth {
			p.cut("%s has more than %d directories inside one another", top, p.limits.Depth)
			return nil
		}
		var below []string
		for _, dir := range level {
			if p.limits.dirs > 0 && len(p.places) >= p.limits.dirs {
				p.cut("the plugins have more than %d directories", p.limits.dirs)
				return nil
			}
			if err := p.watch(dir); err != nil {
				return err
			}
			entries, more, err := list(dir, left)
			if err := p.failed(dir, err); err != nil {
				return err
			}
			left, p.left = left-len(entries), p.left-len(entries)
			if more {
				p.cut("%s has too many files", top)
				return nil
			}
			for _, e := range entries {
				if e.IsDir() && !p.skips(filepath.Join(dir, e.Name())) {
					below = append(below, filepath.Join(dir, e.Name()))
				}
			}
		}
		level = below
	}
	return nil
}

// list reads the entries of a directory, sorted by name. more is true if there are more than limit.
func list(dir string, limit int) (entries []fs.DirEntry, more bool, err error) {
	f, err := os.Open(itself(dir))
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for {
		piece, err := f.ReadDir(256)
		entries = append(entries, piece...)
		if len(entries) > limit {
			entries, more = entries[:limit], true
		}
		if more || err != nil {
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return entries, more, err
		}
	}
}

// itself returns a path that opens only if dir is a directory. Opening a named pipe would block.
func itself(dir string) string {
	if dir == "" {
		return ""
	}
	return dir + string(filepath.Separator) + "."
}
