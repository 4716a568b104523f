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

// Way is what is left of a path to go, name by name. Whoever goes it tells it of the symbolic links on the way.
type Way struct {
	left  []string
	links int
}

// NewWay begins a way through names, in their order.
func NewWay(names []string) *Way { return &Way{left: names} }

// Next takes the next name, which says where to go: a name of a directory, or ".." for the one above. It skips names that lead nowhere.
func (w *Way) Next() (name string, ok bool) {
	for len(w.left) > 0 {
		name, w.left = w.left[0], w.left[1:]
		if name != "" && name != "." {
			return name, true
		}
	}
	return "", false
}

// Left are the names that are left to go.
func (w *Way) Left() []string { return w.left }

// Link puts the names of a link's target before what is left. There may be MaxLinks of them.
func (w *Way) Link(names []string) error {
	if w.links++; w.links > MaxLinks {
		return ErrLoop
	}
	w.left = slices.Concat(names, w.left)
	return nil
}

// Real is where an absolute path leads: through symbolic links, as the system goes. What is not there yet leads to itself. The result has no
// links in it, until somebody puts one there.
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

// Follow is where an absolute path leads to something that is there, and what that is. It calls see, unless that is nil, before it looks at
// a name in a directory; an error of see ends it.
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
			info, err = t.there()
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

// Existing is Follow without its details.
func Existing(name string) (string, error) {
	at, _, err := Follow(name, nil)
	return at, err
}

// track is a way along paths of the file system.
type track struct {
	Way
	at string // clean and without links, so that .. leads to what is above
}

func newTrack(name string) (*track, error) {
	if len(name) > maxPath {
		return nil, syscall.ENAMETOOLONG
	}
	at, names := steps(name)
	return &track{Way{left: names}, at}, nil
}

// step goes to a name. If that is a link, it stays, and has the way lead to where the link does.
func (t *track) step(name string) (link bool, err error) {
	next := filepath.Join(t.at, name)
	if name == ".." {
		t.at = next
		return false, nil
	}
	target, err := os.Readlink(next)
	if err != nil {
		t.at = next // no link, or nothing there
		return false, nil
	}
	root, names := steps(target)
	if filepath.IsAbs(target) {
		t.at = root
	}
	return true, t.Link(names)
}

// there is what stands where the way has come to, which can be gone on from.
func (t *track) there() (fs.FileInfo, error) {
	info, err := os.Lstat(t.at)
	if err == nil && !info.IsDir() && len(t.left) > 0 {
		err = &fs.PathError{Op: "open", Path: t.at, Err: syscall.ENOTDIR}
	}
	return info, err
}

// canonical is the path as the system spells it. Only Windows has several spellings.
func (t *track) canonical() string {
	if runtime.GOOS == "windows" {
		if at, err := filepath.EvalSymlinks(t.at); err == nil {
			return at
		}
	}
	return t.at
}

// steps takes a path apart: where it begins if it is absolute, and the names to go through.
func steps(name string) (root string, names []string) {
	volume := filepath.VolumeName(name)
	return volume + string(filepath.Separator), strings.Split(filepath.ToSlash(name[len(volume):]), "/")
}
