package filepoint

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"lashd/internal/durable"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Prefixes of temporary files. Scans skip everything that starts with tempPrefix.
const (
	tempPrefix = ".lashd-"
	undoPrefix = tempPrefix + "undo-"
)

// Step is one change of a rewind: the path in state Now becomes Want. Nil means that
// nothing exists.
type Step struct {
	Path string              `json:"path"`
	Now  *protocol.FileState `json:"now,omitempty"`
	Want *protocol.FileState `json:"want,omitempty"`
}

// journaled is the JSON form of a Step. The path is encoded as bytes, because a file name
// need not be valid UTF-8.
type journaled struct {
	plain
	Path []byte `json:"path"`
}

// plain is Step without its JSON methods.
type plain Step

// MarshalJSON encodes the step with the exact bytes of its path.
func (s Step) MarshalJSON() ([]byte, error) { return json.Marshal(journaled{plain(s), []byte(s.Path)}) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (s *Step) UnmarshalJSON(b []byte) error {
	var j journaled
	err := json.Unmarshal(b, &j)
	*s = Step(j.plain)
	s.Path = string(j.Path)
	return err
}

// Order returns the steps in an order in which each is possible: first deletions from the
// innermost path outwards, then directories from the outermost inwards, then files and
// links. A directory that becomes a file is deleted by the step itself, after its contents.
// The argument is not modified.
func Order(steps []Step) []Step {
	rank := func(s Step) int {
		switch {
		case s.Want == nil:
			return 0
		case s.Want.Kind == protocol.FileDirectory:
			return 1
		}
		return 2
	}
	steps = slices.Clone(steps)
	slices.SortFunc(steps, func(a, b Step) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		if rank(a) == 0 {
			return strings.Compare(b.Path, a.Path)
		}
		return strings.Compare(a.Path, b.Path)
	})
	return steps
}

// Split divides the result of Order into steps that must run in sequence and steps that may
// then run in any order.
func Split(steps []Step) (ordered, free []Step) {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Want != nil && s.Want.Kind != protocol.FileDirectory })
	if i < 0 {
		i = len(steps)
	}
	return steps[:i], steps[i:]
}

// ErrNotEmpty means that a directory was not deleted because it has other files in it.
var ErrNotEmpty = errors.New("the directory is not empty")

// Make runs one step. content is the content of a regular file. The new file replaces the
// old one atomically, and has the exact mode of the state; call Sync to make the change
// durable. Missing parent directories are created. It returns ErrNotEmpty for a directory
// that it must not delete, and fs.ErrPermission for a file of lashd itself.
func (w *Workspace) Make(s Step, content []byte) error {
	dir, err := w.directory(s.Path)
	if errors.Is(err, fs.ErrNotExist) && s.Want == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err = w.makeAbove(s.Path); err == nil {
			dir, err = w.directory(s.Path)
		}
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return w.apply(dir, path.Base(s.Path), s, content)
}

// Sync makes completed steps durable.
func (w *Workspace) Sync(steps []Step) error {
	return w.eachDirectory(steps, durable.Root)
}

// Tidy removes temporary files that an interrupted rewind left in the directories of its
// steps.
func (w *Workspace) Tidy(steps []Step) error {
	return w.eachDirectory(steps, func(dir *os.Root) error {
		names, err := namesIn(dir, dirNames)
		for _, name := range names {
			if strings.HasPrefix(name, undoPrefix) {
				err = errors.Join(err, dir.Remove(name))
			}
		}
		return err
	})
}

// dirNames is the number of names of a directory that Tidy reads.
const dirNames = 1 << 20

// eachDirectory calls f once for the directory of each step and joins the errors.
func (w *Workspace) eachDirectory(steps []Step, f func(*os.Root) error) (err error) {
	done := map[string]bool{}
	for _, s := range steps {
		if d := path.Dir(s.Path); !done[d] {
			done[d] = true
			err = errors.Join(err, w.inDirectory(s.Path, f))
		}
	}
	return err
}

// inDirectory calls f with the directory of file, or does nothing if there is no such
// directory.
func (w *Workspace) inDirectory(file string, f func(*os.Root) error) error {
	dir, err := w.directory(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		return err
	}
	defer dir.Close()
	return f(dir)
}

// apply runs a step inside an open directory. It deletes what is at the path only if the
// wanted state is nothing or of a kind that cannot replace it.
func (w *Workspace) apply(dir *os.Root, name string, s Step, content []byte) error {
	fi, err := dir.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && w.ours(pathresolve.IdentityOf(fi)) {
		return fs.ErrPermission
	}
	if isDir := err == nil && fi.IsDir(); err == nil && (s.Want == nil || isDir != (s.Want.Kind == protocol.FileDirectory)) {
		if err := remove(dir, name, isDir); err != nil {
			return err
		}
	}
	switch {
	case s.Want == nil:
		return nil
	case s.Want.Kind == protocol.FileDirectory:
		return makeDir(dir, name, pathresolve.ModeOf(s.Want.Mode))
	case s.Want.Kind == protocol.FileLink:
		return replace(dir, name, func(temp string) error { return dir.Symlink(s.Want.Link, temp) })
	case s.Want.Kind == protocol.FileRegular:
		return replace(dir, name, func(temp string) error { return writeFile(dir, temp, content, pathresolve.ModeOf(s.Want.Mode)) })
	}
	return fmt.Errorf("cannot restore a file of kind %s", s.Want.Kind)
}

// remove deletes a file or an empty directory. It is no error if the name does not exist. A
// directory with files in it is ErrNotEmpty.
func remove(dir *os.Root, name string, isDir bool) error {
	err := dir.Remove(name)
	if isDir && err != nil {
		if names, failed := namesOf(dir, name); failed == nil && len(names) > 0 {
			return ErrNotEmpty
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// namesIn returns the names in a directory, at most limit+1 of them.
func namesIn(dir *os.Root, limit int) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return names, nil
}

// namesOf returns up to one name in the directory called name.
func namesOf(dir *os.Root, name string) ([]string, error) {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	return namesIn(sub, 0)
}

// makeAbove creates the missing directories above a path and syncs each of them.
func (w *Workspace) makeAbove(file string) error {
	above := path.Dir(file)
	if above == "." {
		return nil
	}
	if err := w.makeAbove(above); err != nil {
		return err
	}
	dir, err := w.directory(above)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Mkdir(path.Base(above), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.Root(dir)
}

// makeDir creates a directory, or sets the mode of an existing one.
func makeDir(dir *os.Root, name string, mode fs.FileMode) error {
	if err := dir.Mkdir(name, mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return dir.Chmod(name, mode)
}

// replace creates a file under a temporary name and renames it to name, so that readers see
// either the old or the new file. The temporary file is removed after an error.
func replace(dir *os.Root, name string, makes func(temp string) error) error {
	temp := undoPrefix + rand.Text()
	err := makes(temp)
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp) // it may not be there
	}
	return err
}

// writeFile creates a file with exactly this mode, ignoring the umask, and syncs it.
func writeFile(dir *os.Root, name string, content []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}
