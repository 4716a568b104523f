//go:build unix

package pathresolve

import (
	"io/fs"
	"iter"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// handle is an open directory.
type handle struct {
	fd   int
	file *os.File
}

// Begin opens the directory that a root is of.
func Begin(root *os.Root) (Dir, error) {
	f, err := root.Open(".")
	if err != nil {
		return Dir{}, err
	}
	return Dir{handle{int(f.Fd()), f}}, nil
}

// openDir opens a directory by its path.
func openDir(at string) (Dir, error) {
	f, err := os.OpenFile(at, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return Dir{}, err
	}
	return Dir{handle{int(f.Fd()), f}}, nil
}

// Enter opens a directory in another one. A link is none.
func (d Dir) Enter(name string) (Dir, error) {
	fd, err := d.open(name, unix.O_DIRECTORY)
	if err != nil {
		return Dir{}, err
	}
	return Dir{handle{fd, os.NewFile(uintptr(fd), name)}}, nil
}

func (d Dir) open(name string, how int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(d.fd, name, how|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// Close lets the directory go.
func (d Dir) Close() { d.file.Close() } // nothing is written through it

// Entries are what is in it. They can be gone through once.
func (d Dir) Entries() iter.Seq2[os.DirEntry, error] { return inParts(d.file) }

// Stat says what a name stands for.
func (d Dir) Stat(name string) (Facts, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return Facts{}, err
	}
	return factsOf(&st), nil
}

// Self says what the directory itself is. It asks by a name, which the system refuses where it would refuse all names in it.
func (d Dir) Self() (Facts, error) { return d.Stat(".") }

// Link is where a link leads.
func (d Dir) Link(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(d.fd, name, buf)
	return string(buf[:max(n, 0)]), err
}

func (d Dir) openFile(name string) (*os.File, error) {
	fd, err := d.open(name, 0)
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

// Identity tells a file from all others that there are at the same time.
type Identity struct{ dev, ino uint64 }

// Same tells whether two are of one file.
func (i Identity) Same(o Identity) bool { return i == o }

func factsOf(st *unix.Stat_t) Facts {
	f := Facts{
		Mode: ModeOf(uint32(st.Mode)), Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), Inode: st.Ino,
		ID: Identity{uint64(st.Dev), st.Ino},
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		f.Mode |= fs.ModeDir
	case unix.S_IFLNK:
		f.Mode |= fs.ModeSymlink
	default:
		f.Mode |= fs.ModeIrregular
	}
	return f
}

// FactsOf are those of an open file.
func FactsOf(f *os.File) (Facts, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return Facts{}, err
	}
	return factsOf(&st), nil
}

// IdentityOf is that of a file.
func IdentityOf(fi os.FileInfo) Identity {
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}
	}
	return Identity{uint64(s.Dev), s.Ino}
}

// path is where the directory is by now, where the system can tell.
func (d Dir) path(otherwise string) string { return pathOf(d.file, otherwise) }
