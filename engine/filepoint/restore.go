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

	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// tempPrefix begins the names of files that are about to take the place of another one.
const (
	tempPrefix = ".lashd-"
	undoPrefix = tempPrefix + "undo-"
)

// Step is one thing to be done to a path: what stands there becomes what is wanted. Nil is nothing.
type Step struct {
	Path string              `json:"path"`
	Now  *protocol.FileState `json:"now,omitempty"`
	Want *protocol.FileState `json:"want,omitempty"`
}

// journaled is a Step as JSON. A name need not be text, and JSON knows nothing else.
type journaled struct {
	plain
	Path []byte `json:"path"`
}

type plain Step

// MarshalJSON keeps the path as it is.
func (s Step) MarshalJSON() ([]byte, error) { return json.Marshal(journaled{plain(s), []byte(s.Path)}) }

// UnmarshalJSON is its opposite.
func (s *Step) UnmarshalJSON(b []byte) error {
	var j journaled
	err := json.Unmarshal(b, &j)
	*s = Step(j.plain)
	s.Path = string(j.Path)
	return err
}

// Order sorts steps so that each can be done: what goes comes first, from the inside out, then directories from the outside in, and
// then what is in them.
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

// Split parts ordered steps into those that are made one after the other, and those that can be made in any order then.
func Split(steps []Step) (ordered, free []Step) {
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Want != nil && s.Want.Kind != protocol.FileDirectory })
	if i < 0 {
		i = len(steps)
	}
	return steps[:i], steps[i:]
}

// ErrNotEmpty means that a directory stays because there is something in it.
var ErrNotEmpty = errors.New("the directory is not empty")

// Make brings a step about; content is that of a file. It replaces what stands at the path at once and whole. Sync makes it durable.
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
	return w.bring(dir, path.Base(s.Path), s, content)
}

// Sync makes steps durable that were made.
func (w *Workspace) Sync(steps []Step) error {
	return w.eachDirectory(steps, syncRoot)
}

// Tidy removes what a rewind that was cut off has left of its own beside the files of its steps.
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

// dirNames is how many names of a directory are looked through.
const dirNames = 1 << 20

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

// inDirectory does nothing where there is no such directory.
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

func (w *Workspace) bring(dir *os.Root, name string, s Step, content []byte) error {
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
	return fmt.Errorf("%s cannot be made", s.Want.Kind)
}

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

func namesOf(dir *os.Root, name string) ([]string, error) {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	return namesIn(sub, 0)
}

// makeAbove makes the directories above a path.
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
	return syncRoot(dir)
}

func makeDir(dir *os.Root, name string, mode fs.FileMode) error {
	if err := dir.Mkdir(name, mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return dir.Chmod(name, mode)
}

// replace makes something under another name, which then takes the name it is to have.
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

func writeFile(dir *os.Root, name string, content []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}
