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

// Index is the result of the last scan of a workspace: the state of each path and the
// ignore rules. It is not safe for concurrent use. During a Walk the walker's goroutines
// share it, one path each.
type Index struct {
	files map[string]*indexed
	// rules are those of the latest scan, accepted those of the latest scan that Accept confirmed.
	rules, accepted ignoreRules
	// look numbers the scans.
	look uint64
}

// indexed is a file with the number of the last scan that found it.
type indexed struct {
	persistence.WorkspaceFile
	look uint64
}

// NewIndex returns an index with the given files and without ignore rules.
func NewIndex(files []persistence.WorkspaceFile) *Index {
	ix := &Index{files: make(map[string]*indexed, len(files))}
	for _, f := range files {
		ix.Put(f)
	}
	return ix
}

// Get returns the last known state of a path.
func (ix *Index) Get(p string) (persistence.WorkspaceFile, bool) {
	if f := ix.files[p]; f != nil {
		return f.WorkspaceFile, true
	}
	return persistence.WorkspaceFile{}, false
}

// Put stores the state of a file, as found by the latest scan.
func (ix *Index) Put(f persistence.WorkspaceFile) {
	if known := ix.files[f.Path]; known != nil {
		known.WorkspaceFile = f
		return
	}
	ix.files[f.Path] = &indexed{f, ix.look}
}

// Drop removes a path from the index.
func (ix *Index) Drop(p string) { delete(ix.files, p) }

// Hidden reports whether a directory above a path could not be read in the last scan.
func (ix *Index) Hidden(p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if f := ix.files[dir]; f != nil && f.Kind == protocol.FileDirectory && f.Problem != "" {
			return true
		}
	}
	return false
}

// Ignored reports whether the last scan skipped a path, because git ignores it or because
// it is never scanned.
func (ix *Index) Ignored(p string, dir bool) bool { return ix.rules.ignore(p, dir) }

// Accept confirms that the findings of the last scan are stored. Until then WasIgnored answers for
// the scan before it, because a scan whose findings cannot be stored is repeated.
func (ix *Index) Accept() { ix.accepted = ix.rules }

// WasIgnored reports whether the last accepted scan skipped a path. An unknown path that it did not
// skip did not exist then.
func (ix *Index) WasIgnored(p string, dir bool) bool { return ix.accepted.ignore(p, dir) }

// ignoreRules maps directories, with a slash at the end, to their .gitignore files. The directory
// of the workspace is the empty string.
type ignoreRules map[string]ignoreFile

// ignore reports whether git ignores a path, or a directory above it, or whether scans always skip
// it.
func (r ignoreRules) ignore(p string, dir bool) bool {
	var rules glob.Ignores
	for i, c := range p {
		if i == 0 || c == '/' {
			at := p[:i]
			if i > 0 {
				if path.Base(at) == ".git" || rules.Match(at, true) {
					return true
				}
				at += "/"
			}
			if f, ok := r[at]; ok {
				rules = rules.With(at, f.rules)
			}
		}
	}
	return leftOut(path.Base(p)) || rules.Match(p, dir)
}

// missing returns the paths that the last scan did not find, in descending order, so a
// directory comes after its contents. held is the size in bytes of the found files that
// have copies.
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

// ignoreFile is a parsed .gitignore, with the metadata that it had when it was read.
type ignoreFile struct {
	is pathresolve.Facts
	// rules are the parsed patterns.
	rules glob.Ignore
}

// leftOut reports whether scans always skip a name: .git and temporary files of lashd.
func leftOut(name string) bool { return name == ".git" || strings.HasPrefix(name, tempPrefix) }
