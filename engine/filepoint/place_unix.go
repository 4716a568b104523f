//go:build unix

package filepoint

import (
	"io/fs"
	"iter"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// place is a directory that a walk is in. It asks the system once for each file, which is most of what a walk costs.
type place struct {
	fd   int
	file *os.File
}

// begin is the place that a walk begins in.
func (w *Workspace) begin() (place, error) {
	f, err := w.root.Open(".")
	if err != nil {
		return place{}, err
	}
	return place{int(f.Fd()), f}, nil
}

// enter opens a directory in another one. A link is none.
func (p place) enter(name string) (place, error) {
	fd, err := p.open(name, unix.O_DIRECTORY)
	if err != nil {
		return place{}, err
	}
	return place{fd, os.NewFile(uintptr(fd), name)}, nil
}

func (p place) open(name string, how int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(p.fd, name, how|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

func (p place) close() { p.file.Close() } // nothing is written through it

// entries are what is in it. They can be gone through once.
func (p place) entries() iter.Seq2[os.DirEntry, error] { return inParts(p.file) }

// stat says what a name stands for.
func (p place) stat(name string) (facts, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstatat(p.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return facts{}, err
	}
	return factsOf(&st), nil
}

// self says what the place is. It asks by a name, which the system refuses where it would refuse all names in it.
func (p place) self() (facts, error) { return p.stat(".") }

func (p place) link(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(p.fd, name, buf)
	return string(buf[:max(n, 0)]), err
}

// readFile opens a file to be read.
func (p place) readFile(name string) (*os.File, error) {
	fd, err := p.open(name, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// identity tells a file from all others that there are at the same time.
type identity struct{ dev, ino uint64 }

func (i identity) same(o identity) bool { return i == o }

func factsOf(st *unix.Stat_t) facts {
	f := facts{
		mode: modeOf(uint32(st.Mode)), size: st.Size, modified: st.Mtim.Nano(), changed: st.Ctim.Nano(), inode: st.Ino,
		id: identity{uint64(st.Dev), st.Ino},
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		f.mode |= fs.ModeDir
	case unix.S_IFLNK:
		f.mode |= fs.ModeSymlink
	default:
		f.mode |= fs.ModeIrregular
	}
	return f
}

func factsOfFile(f *os.File) (facts, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return facts{}, err
	}
	return factsOf(&st), nil
}

func identityOf(fi os.FileInfo) identity {
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(s.Dev), s.Ino}
}
