package pathresolve

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Way holds the names that remain of a path. The walker takes them one by one and reports symbolic
// links with Link, so that every walker in lashd counts and expands links in the same way.
type Way struct {
	left  []string
	links int
}

// NewWay returns a way through these names.
func NewWay(names []string) *Way { return &Way{left: names} }

// Next returns the next name: a name in the current directory, or ".." for its parent. It skips
// empty names and ".". ok is false at the end.
func (w *Way) Next() (name string, ok bool) {
	for len(w.left) > 0 {
		name, w.left = w.left[0], w.left[1:]
		if name != "" && name != "." {
			return name, true
		}
	}
	return "", false
}

// Left returns the names that remain.
func (w *Way) Left() []string { return w.left }

// Link puts the names of a link's target before the remaining ones. After MaxLinks links it fails
// with ErrLoop.
func (w *Way) Link(names []string) error {
	if w.links++; w.links > MaxLinks {
		return ErrLoop
	}
	w.left = slices.Concat(names, w.left)
	return nil
}

// Real returns where an absolute path leads, following symbolic links as the system does. Parts
// that do not exist stay as they are. The result has no links at the time of the call.
func Real(name string) (string, error) {
	t, err := newTrack(name)
	if err != nil {
		return "", err
	}
	for next, ok := t.Next(); ok; next, ok = t.Next() {
		if _, err := t.step(next); err != nil {
			return "", err
		}
	}
	return t.at, nil
}

// Follow returns where an absolute path leads, and the file there, which must exist. If see is not
// nil, Follow calls it before each lookup of a name in a directory. An error of see ends Follow.
func Follow(name string, see func(dir, name string) error) (at string, info fs.FileInfo, err error) {
	t, err := newTrack(name)
	if err != nil {
		return "", nil, err
	}
	for next, ok := t.Next(); ok; next, ok = t.Next() {
		if see != nil && next != ".." {
			if err := see(t.at, next); err != nil {
				return "", nil, err
			}
		}
		link, err := t.step(next)
		if info = nil; err == nil && !link {
			info, err = t.stat()
		}
		if err != nil {
			return "", nil, err
		}
	}
	if info == nil {
		info, err = os.Lstat(t.at)
	}
	return t.canonical(), info, err
}

// Existing returns where an absolute path leads. The file must exist.
func Existing(name string) (string, error) {
	at, _, err := Follow(name, nil)
	return at, err
}

// track is a walk along paths of the file system.
type track struct {
	Way
	at string // current position: clean and without links, so that .. leads to the parent
}

// newTrack starts at the root of an absolute path.
func newTrack(name string) (*track, error) {
	if len(name) > maxPath {
		return nil, syscall.ENAMETOOLONG
	}
	at, names := steps(name)
	return &track{Way{left: names}, at}, nil
}

// step goes to the next name. At a link it stays where it is, and the link's target comes next.
func (t *track) step(name string) (link bool, err error) {
	next := filepath.Join(t.at, name)
	if name == ".." {
		t.at = next
		return false, nil
	}
	target, err := os.Readlink(next)
	if err != nil {
		t.at = next // not a link, or it does not exist
		return false, nil
	}
	root, names := steps(target)
	if filepath.IsAbs(target) {
		t.at = root
	}
	return true, t.Link(names)
}

// stat returns the file at the current position. It fails for a non-directory if names remain.
func (t *track) stat() (fs.FileInfo, error) {
	info, err := os.Lstat(t.at)
	if err == nil && !info.IsDir() && len(t.left) > 0 {
		err = &fs.PathError{Op: "open", Path: t.at, Err: syscall.ENOTDIR}
	}
	return info, err
}

// canonical returns the current path as the system spells it. Only Windows has several spellings.
func (t *track) canonical() string {
	if runtime.GOOS == "windows" {
		if at, err := filepath.EvalSymlinks(t.at); err == nil {
			return at
		}
	}
	return t.at
}

// steps splits a path into its root and its names. The root counts only if the path is absolute.
func steps(name string) (root string, names []string) {
	volume := filepath.VolumeName(name)
	return volume + string(filepath.Separator), strings.Split(filepath.ToSlash(name[len(volume):]), "/")
}
