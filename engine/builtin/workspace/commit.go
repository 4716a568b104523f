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
	// maxFile is the size in bytes of files that are edited or searched. They are held in
	// memory.
	maxFile = 10 << 20 // files that are edited or searched; they are held in memory

	// newFileMode and newDirMode are the modes of new files and directories, before the
	// umask.
	newFileMode = 0o644
	newDirMode  = 0o755
)

// change is the planned change of one file.
type change struct {
	// at is the place of the file. commit closes or replaces at.dir as it creates
	// directories.
	at place
	// before is the content that the tool has read, after the new one. Both are nil where
	// there is no file.
	before []byte
	after  []byte
	// remove deletes the file. after is ignored then.
	remove bool
	// mode is the mode of the new content. 0: the default for new files.
	mode fs.FileMode
	// section is the index of the section of a patch that makes the change.
	section int
	// temp is the name of the temporary file that holds after, until it is renamed.
	temp string
}

// exists reports whether the file existed when the change was planned. A new file must
// still be absent when the commit checks it, see unchanged.
func (c *change) exists() bool { return c.at.info != nil }

// fileChange describes the change for clients, with a unified diff.
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

// commit makes all changes or none. It announces them to the host, writes the new contents
// to temporary files, and checks that no file has changed since it was read. Then it passes
// the gate and renames the files. If a rename fails, it restores the earlier ones. ctx can
// cancel it only before the first rename. An error with errHalfway means that restoring
// failed.
func commit(ctx context.Context, host tool.Host, v *view, all []*change) (err error) {
	for _, c := range all {
		if err := v.asShown(c); err != nil {
			return fmt.Errorf("%s: %w", c.at.path(), err)
		}
	}
	for _, c := range all {
		if err := host.Touch(ctx, c.at.path()); err != nil {
			return fmt.Errorf("record the state before the change of %s: %w", c.at.path(), err)
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

// staging holds the open directories, new directories and temporary files of a commit.
type staging struct {
	// view opens the directories below the workspace.
	view *view
	// opened are directories that stage moved on from. They stay open until the end,
	// because clean removes through them.
	opened []*dir
	// created are new directories, outermost first.
	created []createdDir
	// temps are the changes with a temporary file.
	temps []*change
}

// createdDir is a directory that the commit created.
type createdDir struct {
	parent *dir
	name   string
}

// stage creates the directories that c needs and writes its content to a temporary file
// beside the target.
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

// descend replaces c's directory by the next one on the path, and creates that if
// necessary.
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

// clean removes temporary files and closes directories. After a failure it also removes the
// directories that the commit created.
func (s *staging) clean(failed bool) error {
	var errs []error
	for _, c := range s.temps {
		if c.temp != "" {
			errs = append(errs, c.at.dir.root.Remove(c.temp))
		}
	}
	for i := len(s.created) - 1; failed && i >= 0; i-- {
		s.created[i].parent.root.Remove(s.created[i].name) // fails if the directory is no longer empty, which is right
	}
	for _, d := range s.opened {
		d.close()
	}
	return errors.Join(errs...)
}

// unchanged returns errMoved if the file was written or replaced since it was read.
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

// take makes the change visible: it renames the temporary file, or deletes the file.
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

// errHalfway means that a commit failed and its first changes could not be restored.
var errHalfway = errors.New("its old content could not be restored")

// undo restores the old contents of files.
func undo(done []*change) error {
	var errs []error
	for _, c := range done {
		if err := c.revert(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %w", c.at.path(), errHalfway, err))
		}
	}
	return errors.Join(errs...)
}

// revert restores the old content of one file after a later file failed. It deletes a file
// that the commit created. The restored file is a new one with the old mode, so hard links
// to the old file are lost.
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

// writeFile creates a file in d and syncs it. If it fails, no file is left. Mode 0 means
// the default mode.
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
	// A rename is atomic for readers, but after a power failure only if the content is already on disk.
	return f.Sync()
}

// create returns the change that creates a file.
func create(at place, after []byte) *change {
	return &change{at: at, after: after}
}

// changed returns the result of a committed set of changes.
func changed(text string, all []*change) (protocol.ToolOutput, error) {
	list := make([]protocol.FileChange, len(all))
	sum := protocol.FileChange{}
	for i, c := range all {
		list[i] = c.fileChange()
		sum.Diff += list[i].Diff
		sum.Added += list[i].Added
		sum.Removed += list[i].Removed
	}
	// A result has one change. For several files it has the path of the first file and all diffs.
	sum.Path = list[0].Path
	sum.Diff = cutDiff(sum.Diff, false)
	for i := range list {
		list[i].Diff = ""
	}
	out, err := withValue(text, changedValue{list})
	out.Change = &sum
	return out, err
}

// changedValue is the structured result of write, edit and patch.
type changedValue struct {
	// Files lists the changed files without their diffs; the result has those once, in its
	// Change.
	Files []protocol.FileChange `json:"files"`
}
