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
)

// Signature stands for what a directory is made of: names, files, sizes, times, modes, links, but not what is in the files. As
// long as it is the same nothing has changed. A directory in which something changed just now has one that never comes again,
// because the next change might not show. Links are not followed. A directory that is too large to be a plugin is an error.
func Signature(dir string) (string, error) {
	r, err := os.OpenRoot(itself(dir))
	if err != nil {
		return "", err
	}
	defer r.Close()
	s := signer{root: r, sum: sha256.New(), now: time.Now(), left: maxEntries}
	if err := s.directory(".", 0); err != nil {
		return "", err
	}
	return s.String(), nil
}

type signer struct {
	root *os.Root
	sum  hash.Hash
	now  time.Time
	left int // entries
	hot  bool
}

func (s *signer) String() string {
	if s.hot {
		fmt.Fprint(s.sum, s.now.UnixNano())
	}
	return fmt.Sprintf("%x", s.sum.Sum(nil))
}

func (s *signer) directory(name string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: there are more than %d directories inside one another", name, maxDepth)
	}
	info, err := s.root.Lstat(name)
	if err != nil {
		return err
	}
	s.record(name, "", info)
	entries, err := s.list(name)
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

func (s *signer) list(name string) ([]string, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(s.left + 1)
	if s.left -= len(names); s.left < 0 {
		return nil, fmt.Errorf("the directory has more than %d files", maxEntries)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

func (s *signer) entry(name string, depth int) error {
	info, err := s.root.Lstat(name)
	if err == nil && info.IsDir() {
		return s.directory(name, depth+1)
	}
	to := ""
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		to, err = s.root.Readlink(name)
	}
	if errors.Is(err, fs.ErrNotExist) { // it was there just now
		s.hot, err = true, nil
	}
	if err == nil && info != nil {
		s.record(name, to, info)
	}
	return err
}

func (s *signer) record(name, to string, info fs.FileInfo) {
	stamp := StampOf(info)
	fmt.Fprintf(s.sum, "%q %q %+v ", name, to, stamp)
	s.hot = s.hot || stamp.Hot(s.now)
}

// signRoot stands for what a root is made of, as Signature does for each plugin in it.
func (l Limits) signRoot(dir string) string {
	sum := sha256.New()
	real, err := filepath.EvalSymlinks(dir)
	fmt.Fprintf(sum, "%q %v ", real, err)
	if err == nil {
		l.signPlugins(sum, real)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func (l Limits) signPlugins(sum io.Writer, dir string) {
	plugins, _, err := list(dir, l.Plugins)
	fmt.Fprint(sum, err)
	for _, e := range plugins {
		signature := ""
		real, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err == nil {
			signature, err = Signature(real)
		}
		fmt.Fprintf(sum, "%q %v %q %q %v ", e.Name(), e.Type(), real, signature, err)
	}
}
