package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

const (
	maxFile = 10 << 20 // files that are edited or searched; they are held in memory

	newFileMode = 0o644
	newDirMode  = 0o755
)

// change is what is to become of one file.
type change struct {
	at     place
	before []byte
	after  []byte
	remove bool
	mode   fs.FileMode // 0: as usual for a new file
	temp   string      // holds after until it takes its name
}

func (c *change) exists() bool { return c.at.info != nil }

// fileChange describes c for clients.
func (c *change) fileChange() protocol.FileChange {
	p := c.at.path()
	from, to := "a/"+p, "b/"+p
	if !c.exists() {
		from = "/dev/null"
	}
	if c.remove {
		to = "/dev/null"
	}
	body, added, removed := unified(string(c.before), string(c.after))
	diff := ""
	if body != "" {
		diff = fmt.Sprintf("--- %s\n+++ %s\n%s", from, to, body)
	}
	return protocol.FileChange{Path: p, Diff: diff, Added: added, Removed: removed}
}

// commit makes all changes, or none: what could fail is done to temporary files first, and what fails after that is
// undone. It gives up on ctx only until the first file has its new content.
func commit(ctx context.Context, host tool.Host, v *view, all []*change) (err error) {
	for _, c := range all {
		if err := host.Touch(ctx, c.at.path()); err != nil {
			return fmt.Errorf("announce the change of %s: %w", c.at.path(), err)
		}
	}
	s := &staging{view: v}
	defer func() { err = errors.Join(err, s.clean(err != nil)) }()
	for _, c := range all {
		if err := s.stage(c); err != nil {
			return fmt.Errorf("prepare %s: %w", c.at.path(), err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, c := range all {
		if err := c.unchanged(); err != nil {
			return fmt.Errorf("%s: %w", c.at.path(), err)
		}
	}
	if !v.gate.Pass() {
		return errUnchanged
	}
	for i, c := range all {
		if err := c.take(); err != nil {
			return errors.Join(fmt.Errorf("change %s: %w", c.at.path(), err), undo(all[:i]))
		}
	}
	return nil
}

// staging is what a commit leaves on disk until it is done.
type staging struct {
	view    *view
	opened  []*dir
	created []createdDir
	temps   []*change
}

type createdDir struct {
	parent *dir
	name   string
}

// stage makes the directories that c needs and writes its content beside where it will be.
func (s *staging) stage(c *change) error {
	for len(c.at.rest) > 1 {
		if err := s.descend(c); err != nil {
			return err
		}
	}
	if c.remove {
		return nil
	}
	temp := ".lashd-" + rand.Text()
	if err := writeFile(c.at.dir, temp, c.after, c.mode); err != nil {
		return err
	}
	c.temp = temp
	s.temps = append(s.temps, c)
	return nil
}

// descend replaces c's directory by the next one on the way, which it creates if it must.
func (s *staging) descend(c *change) error {
	parent, name := c.at.dir, c.at.rest[0]
	switch err := parent.root.Mkdir(name, newDirMode); {
	case err == nil:
		s.created = append(s.created, createdDir{parent, name})
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	fi, err := parent.root.Lstat(name)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return errMoved
	}
	next, err := s.view.enter(parent, name, fi)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, parent)
	c.at.dir, c.at.rest = next, c.at.rest[1:]
	return nil
}

// clean removes what a commit no longer needs; after a failure also the directories it made.
func (s *staging) clean(failed bool) error {
	var errs []error
	for _, c := range s.temps {
		if c.temp != "" {
			errs = append(errs, c.at.dir.root.Remove(c.temp))
		}
	}
	for i := len(s.created) - 1; failed && i >= 0; i-- {
		s.created[i].parent.root.Remove(s.created[i].name) // fails if somebody put something in it, rightly
	}
	for _, d := range s.opened {
		d.close()
	}
	return errors.Join(errs...)
}

// unchanged makes sure that nobody wrote the file since it was read.
func (c *change) unchanged() error {
	now, err := c.at.dir.root.Lstat(c.at.name())
	if errors.Is(err, fs.ErrNotExist) && !c.exists() {
		return nil
	}
	if err != nil {
		return err
	}
	was := c.at.info
	if was == nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()) {
		return errMoved
	}
	return nil
}

func (c *change) take() error {
	if c.remove {
		return c.at.dir.root.Remove(c.at.name())
	}
	if err := c.at.dir.root.Rename(c.temp, c.at.name()); err != nil {
		return err
	}
	c.temp = ""
	return nil
}

// errHalfway means that a commit failed and could not be undone.
var errHalfway = errors.New("its new content could not be undone")

// undo gives files their old content back.
func undo(done []*change) error {
	var errs []error
	for _, c := range done {
		if err := c.revert(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %w", c.at.path(), errHalfway, err))
		}
	}
	return errors.Join(errs...)
}

func (c *change) revert() error {
	if !c.exists() {
		return c.at.dir.root.Remove(c.at.name())
	}
	temp := ".lashd-" + rand.Text()
	if err := writeFile(c.at.dir, temp, c.before, c.at.info.Mode().Perm()); err != nil {
		return err
	}
	return c.at.dir.root.Rename(temp, c.at.name())
}

// writeFile makes a new file in d, and leaves none if it fails. Mode 0 is the usual one of this user.
func writeFile(d *dir, name string, data []byte, mode fs.FileMode) (err error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, cmp.Or(mode, newFileMode))
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, d.root.Remove(name))
		}
	}()
	if mode != 0 {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	// A rename is atomic for who looks at the file, but after a power cut only if the content came to disk first.
	return f.Sync()
}

// rewrite is the change of an existing file. The caller has read before from it.
func rewrite(at place, before, after []byte) *change {
	return &change{at: at, before: before, after: after, mode: at.info.Mode().Perm()}
}

// create is the change that makes a new file.
func create(at place, after []byte) *change {
	return &change{at: at, after: after}
}

// changed is the output for a committed set of changes.
func changed(text string, all []*change) (protocol.ToolOutput, error) {
	list := make([]protocol.FileChange, len(all))
	sum := protocol.FileChange{}
	for i, c := range all {
		list[i] = c.fileChange()
		sum.Diff += list[i].Diff
		sum.Added += list[i].Added
		sum.Removed += list[i].Removed
	}
	// One output has one change: of several files it shows the first one's name and everybody's diff.
	sum.Path = list[0].Path
	sum.Diff = cutDiff(sum.Diff, false)
	for i := range list {
		list[i].Diff = ""
	}
	out, err := withValue(text, changedValue{list})
	out.Change = &sum
	return out, err
}

type changedValue struct {
	Files []protocol.FileChange `json:"files"`
}
