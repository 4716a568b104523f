package filepoint

import (
	"path"
	"slices"
	"strings"

	"lashd/internal/glob"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Index is what is known of the files of a workspace: what stood at each path when it was looked at last, and what git ignores there.
// Whoever has it has it alone.
type Index struct {
	files map[string]*indexed
	rules map[string]ignoreFile // by the directory that they are of
	look  uint64                // how many there were
}

type indexed struct {
	persistence.WorkspaceFile
	look uint64 // that found it last
}

// NewIndex knows these files.
func NewIndex(files []persistence.WorkspaceFile) *Index {
	ix := &Index{files: make(map[string]*indexed, len(files))}
	for _, f := range files {
		ix.Put(f)
	}
	return ix
}

// Get tells what is known of a path.
func (ix *Index) Get(p string) (persistence.WorkspaceFile, bool) {
	if f := ix.files[p]; f != nil {
		return f.WorkspaceFile, true
	}
	return persistence.WorkspaceFile{}, false
}

// Put has it know a file.
func (ix *Index) Put(f persistence.WorkspaceFile) {
	if known := ix.files[f.Path]; known != nil {
		known.WorkspaceFile = f
		return
	}
	ix.files[f.Path] = &indexed{f, ix.look}
}

// Drop has it forget a path.
func (ix *Index) Drop(p string) { delete(ix.files, p) }

// Hidden tells whether a directory above a path could not be looked into.
func (ix *Index) Hidden(p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if f := ix.files[dir]; f != nil && f.Kind == protocol.FileDirectory && f.Problem != "" {
			return true
		}
	}
	return false
}

// Ignored tells whether the look before left a path out, as git does.
func (ix *Index) Ignored(p string, dir bool) bool {
	var rules []ignoring
	for i, c := range p {
		if i == 0 || c == '/' {
			at := p[:i]
			if i > 0 {
				if path.Base(at) == ".git" || ignored(rules, at, true) {
					return true
				}
				at += "/"
			}
			if f, ok := ix.rules[at]; ok {
				rules = append(rules, ignoring{at, f.rules})
			}
		}
	}
	return leftOut(path.Base(p)) || ignored(rules, p, dir)
}

// missing are the paths that the last look did not find, from the longest on, so that what is in a directory comes before it; held is
// how many bytes there are copies of, of those that it did find.
func (ix *Index) missing() (paths []string, held int64) {
	for p, f := range ix.files {
		switch {
		case f.look != ix.look:
			paths = append(paths, p)
		case f.Digest != "":
			held += f.Size
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(b, a) })
	return paths, held
}

// ignoreFile is a .gitignore as it was read, and what was said of it then.
type ignoreFile struct {
	is    pathresolve.Facts
	rules glob.Ignore
}

// ignoring is a .gitignore, in the directory that it lies in.
type ignoring struct {
	dir   string // with a slash at its end; empty: the workspace
	rules glob.Ignore
}

// ignored tells what the nearest .gitignore says that says something.
func ignored(rules []ignoring, file string, dir bool) bool {
	for _, ig := range slices.Backward(rules) {
		if ignored, said := ig.rules.Verdict(strings.TrimPrefix(file, ig.dir), dir); said {
			return ignored
		}
	}
	return false
}

// leftOut tells of names that no look looks at.
func leftOut(name string) bool { return name == ".git" || strings.HasPrefix(name, tempPrefix) }

// IsIgnoreFile tells whether a file says what git ignores.
func IsIgnoreFile(file string) bool { return path.Base(file) == ignoreName }
