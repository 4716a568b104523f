package watch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"lashd/internal/pathresolve"
	"lashd/pluginloader/layout"
)

// Signature returns a fingerprint of a directory tree: names, sizes, times, modes and link targets,
// but not file contents. While it stays the same, nothing has changed. If something changed just
// now, the result is unique, because the next change might not show. Links are not followed. A
// directory that is too large for a plugin is an error. only selects a part of the directory; nil: all.
func Signature(dir string, only layout.Selection) (string, error) {
	m, err := Measure(dir, maxEntries, only)
	return m.Signature, err
}

// Measured describes a directory without its file contents.
type Measured struct {
	Signature string
	Entries   int   // files, directories and links
	Bytes     int64 // sum of file sizes
}

// Measure returns the signature and size of a directory. A directory with more than limit entries
// is an error; the result then has the counts so far.
func Measure(dir string, limit int, only layout.Selection) (Measured, error) {
	r, err := os.OpenRoot(itself(dir))
	if err != nil {
		return Measured{}, err
	}
	defer r.Close()
	s := signer{root: r, sum: sha256.New(), now: time.Now(), limit: min(limit, maxEntries), only: only}
	err = s.directory(".", 0)
	m := Measured{Entries: s.entries, Bytes: s.bytes}
	if err == nil {
		m.Signature = s.String()
	}
	return m, err
}

// signer computes a signature in one walk.
type signer struct {
	root    *os.Root
	sum     hash.Hash
	now     time.Time // time at the start, to decide which stamps are hot
	limit   int       // entries
	only    layout.Selection
	entries int
	bytes   int64
	hot     bool // a file changed too recently for its stamp to show the next change
}

// String returns the signature. If a stamp was hot, the time makes the signature unique.
func (s *signer) String() string {
	if s.hot {
		fmt.Fprint(s.sum, s.now.UnixNano())
	}
	return fmt.Sprintf("%x", s.sum.Sum(nil))
}

// directory adds a directory and everything in it.
func (s *signer) directory(name string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: there are more than %d directories inside one another", name, maxDepth)
	}
	info, err := s.root.Lstat(name)
	if err != nil {
		return err
	}
	entries, some := s.only.Children(name)
	if !some {
		s.record(name, "", info)
		entries, err = s.list(name)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.entry(path.Join(name, e), depth); err != nil {
			return err
		}
	}
	return nil
}

// list returns the sorted names in a directory, and fails beyond the limit.
func (s *signer) list(name string) ([]string, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(s.limit - s.entries + 1)
	if s.entries += len(names); s.entries > s.limit {
		return nil, fmt.Errorf("the directory has more than %d files", s.limit)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// entry adds a file, link or directory.
func (s *signer) entry(name string, depth int) error {
	info, err := s.root.Lstat(name)
	if err == nil && info.IsDir() {
		return s.directory(name, depth+1)
	}
	to := ""
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		to, err = s.root.Readlink(name)
	}
	if errors.Is(err, fs.ErrNotExist) { // removed after it was listed, or not there
		s.hot, err = s.hot || s.only == nil, nil
	}
	if err == nil && info != nil {
		s.record(name, to, info)
	}
	return err
}

// record adds the name, link target and stamp of an entry.
func (s *signer) record(name, to string, info fs.FileInfo) {
	if info.Mode().IsRegular() {
		s.bytes += info.Size()
	}
	stamp := StampOf(info)
	fmt.Fprintf(s.sum, "%q %q %+v ", name, to, stamp)
	s.hot = s.hot || stamp.Hot(s.now)
}

// signRoot returns a fingerprint of a root and of each plugin in it, within the limits.
func (l Limits) signRoot(dir string, b Bounds) string {
	sum := sha256.New()
	real, err := pathresolve.Existing(dir)
	fmt.Fprintf(sum, "%q %v ", real, err)
	if err == nil && !b.outside(real) {
		l.signPlugins(sum, real, b)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// signPlugins adds each plugin of a root to sum.
func (l Limits) signPlugins(sum io.Writer, dir string, b Bounds) {
	plugins, _, err := list(dir, l.Plugins)
	fmt.Fprint(sum, err)
	left := l.Total
	for _, e := range plugins {
		var m Measured
		real, err := pathresolve.Existing(filepath.Join(dir, e.Name()))
		if limit := min(left, l.Entries); err == nil && !b.outside(real) && limit > 0 {
			m, err = Measure(real, limit, nil)
			if b.Entries > 0 { // without bounds there is no total, so that one large plugin cannot hide the others
				left -= min(m.Entries, limit)
			}
		}
		fmt.Fprintf(sum, "%q %v %q %q %v ", e.Name(), e.Type(), real, m.Signature, err)
	}
}
