// Package files lists the files and directories of a workspace, and finds those that
// match a few letters of a path. The chat completes paths with it.
//
// It reads only names and .gitignore files. It never follows a symbolic link, so no
// entry leads out of the workspace.
package files

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"lashd/internal/glob"
	"lashd/internal/pathresolve"
	"lashd/internal/termtext"
)

// Limits of a listing.
const (
	mostEntries = 200_000
	maxDepth    = 100       // nested directories
	maxIgnore   = 256 << 10 // bytes that are read of a .gitignore
	longestPath = 4096      // in bytes
)

// Read lists a workspace, whose path must be absolute and without links. It leaves out
// files that git ignores, .git, symbolic links, sockets and devices, and names that a
// terminal cannot show. Directories that cannot be read count as empty. After
// 200,000 entries it stops; those of the upper directories come first.
func Read(ctx context.Context, dir string) (*List, error) {
	top, err := pathresolve.OpenReal(dir)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	r := reader{top: top, next: []directory{{}}}
	for len(r.next) > 0 && !r.full() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d := r.next[0]
		r.next = r.next[1:]
		r.read(d)
	}
	return newList(r.paths, r.full()), nil
}

// reader reads directories, the nearest to the top first.
type reader struct {
	top   pathresolve.Dir
	paths []string
	next  []directory // found and not yet read
}

// full reports whether the listing has reached its limit.
func (r *reader) full() bool { return len(r.paths) == mostEntries }

// directory is a directory of the workspace.
type directory struct {
	path  string // "", or with a slash at the end
	rules glob.Ignores
	depth int
}

// read adds the entries of a directory to the list.
func (r *reader) read(d directory) {
	at, err := r.open(d.path)
	if err != nil {
		return // it was deleted, replaced by a link, or cannot be read
	}
	defer at.Close()
	d.rules = d.rules.With(d.path, ignores(at))
	for e, err := range at.Entries() {
		if err != nil || r.full() {
			return
		}
		r.add(d, e)
	}
}

// open opens a directory of the workspace, one name after another.
func (r *reader) open(dir string) (pathresolve.Dir, error) {
	at, err := r.top.Enter(".")
	for name := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if err != nil || name == "" {
			break
		}
		var next pathresolve.Dir
		next, err = at.Enter(name)
		at.Close()
		at = next
	}
	return at, err
}

// add adds an entry of a directory to the list, and a directory also to those to
// read.
func (r *reader) add(d directory, e os.DirEntry) {
	name, p := e.Name(), path.Join(d.path, e.Name())
	shown := utf8.ValidString(name) && termtext.Printable(name) == name && !strings.ContainsAny(name, "\"\n")
	if name == ".git" || !shown || len(p) > longestPath || d.rules.Match(p, e.IsDir()) {
		return
	}
	switch {
	case e.IsDir():
		p += "/"
		if d.depth < maxDepth {
			r.next = append(r.next, directory{p, d.rules, d.depth + 1})
		}
	case e.Type()&fs.ModeType != 0:
		return
	}
	r.paths = append(r.paths, p)
}

// ignores returns the rules of a directory's .gitignore. A file that cannot be read
// ignores nothing.
func ignores(at pathresolve.Dir) glob.Ignore {
	is, err := at.Stat(".gitignore")
	if err != nil {
		return nil
	}
	f, err := at.OpenRegular(".gitignore", is, func(f *os.File) { f.Close() })
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return nil
	}
	return glob.ParseIgnore(string(text))
}
