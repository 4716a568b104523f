package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"lashd/internal/pathresolve"
	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
)

// copier copies a directory tree within the limits for plugins. Both roots confine it, so links in
// the source cannot make it read or write elsewhere, even if another process changes the source at
// the same time. The copy can be read and executed but not written.
type copier struct {
	from    *os.Root
	to      *os.Root
	entries int   // counted against manifest.MaxEntries
	bytes   int64 // counted against manifest.MaxContents
	only    layout.Selection
}

// copyTree copies the directory from, or the selected part of it, to the new directory to. A failed copy leaves a partial tree.
func copyTree(ctx context.Context, from, to string, only layout.Selection) error {
	source, err := os.OpenRoot(from + string(filepath.Separator) + ".") // the dot makes this fail for a pipe, which would block
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	c := copier{from: source, to: target, only: only}
	return c.directory(ctx, ".", 0)
}

// directory copies a directory and everything in it, and makes the copy read-only last.
func (c *copier) directory(ctx context.Context, name string, depth int) error {
	if depth > manifest.MaxDepth {
		return fmt.Errorf("%s: there are more than %d directories inside one another", name, manifest.MaxDepth)
	}
	names, some := c.only.Children(name)
	var err error
	if !some {
		names, err = c.list(ctx, name)
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := c.entry(ctx, path.Join(name, n), depth); err != nil {
			return err
		}
	}
	return c.to.Chmod(name, 0o500)
}

// list reads the names in a directory. It stops at the limit, before a huge directory fills the
// memory. Opening without O_NONBLOCK would block if a pipe has taken the directory's place.
func (c *copier) list(ctx context.Context, name string) ([]string, error) {
	dir, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(manifest.MaxEntries + 1)
	if c.entries += len(names); c.entries > manifest.MaxEntries {
		return nil, fmt.Errorf("the directory has more than %d files", manifest.MaxEntries)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, cmp.Or(err, context.Cause(ctx))
}

// entry copies a file, link or directory and rejects everything else, such as devices and pipes.
func (c *copier) entry(ctx context.Context, name string, depth int) error {
	info, err := c.from.Lstat(name)
	if c.only != nil && (errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() == fs.ModeSymlink) {
		return nil
	}
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		if err := c.to.Mkdir(name, 0o700); err != nil {
			return err
		}
		return c.directory(ctx, name, depth+1)
	case fs.ModeSymlink:
		to, err := c.from.Readlink(name)
		if err != nil {
			return err
		}
		return c.to.Symlink(to, name) // manifest.Digest rejects links that leave the directory
	case 0:
		return c.file(ctx, name)
	}
	return fmt.Errorf("%s is neither a file nor a directory nor a link", name)
}

// file copies a regular file. If another file takes its place, or its size changes during the copy,
// it fails.
func (c *copier) file(ctx context.Context, name string) error {
	info, err := c.from.Lstat(name)
	if err != nil {
		return err
	}
	if err := c.permit(name, info); err != nil {
		return err
	}
	from, err := pathresolve.OpenRegular(c.from, name, info, func(f *os.File) { f.Close() })
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer from.Close()
	to, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, info.Size()+1))
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%s: %w", name, ErrChanging)
	}
	return cmp.Or(errors.Join(err, to.Chmod(sealed(info)), to.Close()), context.Cause(ctx))
}

// permit rejects files that no plugin may contain.
func (c *copier) permit(name string, info fs.FileInfo) error {
	c.bytes += info.Size()
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return fmt.Errorf("%s has the set-user-id or set-group-id bit, which is not allowed", name)
	case info.Size() > manifest.MaxContent || c.bytes > manifest.MaxContents:
		return fmt.Errorf("%s: a file has at most %d bytes, and all together at most %d", name, manifest.MaxContent, manifest.MaxContents)
	}
	return nil
}

// sealed returns the mode of a file's copy: read-only, and executable if the original is for
// anyone. Other permissions are dropped; the digest does not cover them.
func sealed(info fs.FileInfo) fs.FileMode {
	if info.Mode()&0o111 != 0 {
		return 0o500
	}
	return 0o400
}
