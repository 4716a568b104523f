package manifest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"lashd/pluginloader/layout"
	"lashd/rpc/protocol"
)

// Limits of a plugin's directory. A larger one is an error.
const (
	MaxEntries  = 10_000    // files, links and directories
	MaxDepth    = 32        // nesting of directories
	MaxContent  = 64 << 20  // bytes of a file
	MaxContents = 512 << 20 // bytes of all files
)

// Digest identifies everything that a person approves: names and bytes of all files, whether they
// are executable, links, and what the plugin uses outside its directory. The same state always
// gives the same digest, and any change gives another one.
//
// These are errors: a link that leaves the directory or leads nowhere, a special file, a directory
// beyond the limits, and a change during the read. The digest does not cover later changes. To run
// approved code, copy the directory first and compute the digest of the copy.
func Digest(ctx context.Context, root *os.Root, b Beyond) (protocol.Digest, error) {
	return DigestOnly(ctx, root, b, nil)
}

// DigestOnly is Digest for the selected part of a directory. A directory with only that part has the same digest.
func DigestOnly(ctx context.Context, root *os.Root, b Beyond, only layout.Selection) (protocol.Digest, error) {
	d := digester{root: root, sum: sha256.New(), only: only}
	d.record("lash plugin", "1")
	if err := d.directory(ctx, ".", 0); err != nil {
		return "", err
	}
	b.record(&d)
	return protocol.Digest(fmt.Sprintf("%x", d.sum.Sum(nil))), nil
}

// digester computes the digest of a directory.
type digester struct {
	root    *os.Root
	sum     hash.Hash
	entries int   // counted against MaxEntries
	bytes   int64 // counted against MaxContents
	only    layout.Selection
}

// record adds fields with their lengths, so that different fields never give the same bytes.
func (d *digester) record(fields ...string) {
	d.number(uint64(len(fields)))
	for _, f := range fields {
		d.number(uint64(len(f)))
		io.WriteString(d.sum, f) // a hash never fails
	}
}

func (d *digester) number(n uint64) {
	d.sum.Write(binary.BigEndian.AppendUint64(nil, n))
}

// directory adds a directory and everything in it, sorted by name.
func (d *digester) directory(ctx context.Context, name string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("%s: there are more than %d directories inside one another", name, MaxDepth)
	}
	if names, some := d.only.Children(name); some {
		d.record("directory", name, fs.FileMode(0).String())
		return d.all(ctx, name, names, depth)
	}
	dir, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK, opening a pipe would block
	if err != nil {
		return err
	}
	defer dir.Close()
	before, err := dir.Stat()
	if err != nil {
		return err
	}
	entries, err := d.list(ctx, dir)
	if err != nil {
		return err
	}
	d.record("directory", name, mode(before))
	if err := d.all(ctx, name, entries, depth); err != nil {
		return err
	}
	return unchanged(dir, before, name)
}

// all adds entries of a directory.
func (d *digester) all(ctx context.Context, dir string, names []string, depth int) error {
	for _, name := range names {
		if err := d.entry(ctx, path.Join(dir, name), depth); err != nil {
			return err
		}
	}
	return nil
}

// unchanged returns an error if an open file or directory has changed since before.
func unchanged(f *os.File, before fs.FileInfo, name string) error {
	after, err := f.Stat()
	if err == nil && (!after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() || after.Mode() != before.Mode()) {
		err = fmt.Errorf("%s: %w", name, errChanged)
	}
	return err
}

// list reads names in pieces, so that a huge directory fails before it fills the memory.
func (d *digester) list(ctx context.Context, dir *os.File) ([]string, error) {
	var names []string
	for {
		piece, err := dir.Readdirnames(256)
		names = append(names, piece...)
		if d.entries += len(piece); d.entries > MaxEntries {
			return nil, fmt.Errorf("the directory has more than %d files", MaxEntries)
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return nil, err
		}
	}
}

// entry adds a file, link or directory and rejects everything else.
func (d *digester) entry(ctx context.Context, name string, depth int) error {
	info, err := d.root.Lstat(name)
	if d.only != nil && (errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() == fs.ModeSymlink) {
		return nil
	}
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return d.directory(ctx, name, depth+1)
	case fs.ModeSymlink:
		return d.link(name)
	case 0:
		return d.file(ctx, name, info)
	}
	return fmt.Errorf("%s is neither a file nor a directory nor a link", name)
}

// link adds the target of a link. The target itself is inside the directory, and so is added as a
// file.
func (d *digester) link(name string) error {
	to, err := d.root.Readlink(name)
	if err != nil {
		return err
	}
	if _, err := d.root.Stat(name); err != nil {
		return fmt.Errorf("the link %s to %s must lead to a file inside the plugin's directory: %w", name, to, err)
	}
	d.record("link", name, to)
	return nil
}

// file adds the mode and the contents of a file. seen is the file as it was listed.
func (d *digester) file(ctx context.Context, name string, seen fs.FileInfo) error {
	f, info, err := openRegular(d.root, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if !os.SameFile(info, seen) {
		return fmt.Errorf("%s: %w", name, errChanged)
	}
	if d.bytes += info.Size(); info.Size() > MaxContent || d.bytes > MaxContents {
		return fmt.Errorf("%s: a file has at most %d bytes, and all together at most %d", name, MaxContent, MaxContents)
	}
	content := sha256.New()
	n, err := io.Copy(content, io.LimitReader(reader{ctx, f}, info.Size()+1))
	switch {
	case err != nil:
		return err
	case n != info.Size():
		return fmt.Errorf("%s: %w", name, errChanged)
	}
	d.record("file", name, mode(info), string(content.Sum(nil)))
	return unchanged(f, info, name)
}

// mode returns the parts of a mode that matter: whether the file is executable, and with whose
// rights. Read and write permissions differ in a copy, so they do not count.
func mode(info fs.FileInfo) string {
	kept := info.Mode() & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	if info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		kept |= 0o111
	}
	return kept.String()
}

// reader reads from r until ctx ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// joined encodes a list as one field without ambiguity.
func joined(list []string) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%d:%s,", len(s), s)
	}
	return b.String()
}
