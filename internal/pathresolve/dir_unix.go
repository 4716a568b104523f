//go:build unix

package pathresolve

import (
	"io/fs"
	"iter"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// handle is an open directory. file owns fd.
type handle struct {
	fd   int
	file *os.File
}

// Begin opens the directory of a root as a Dir.
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

// Enter opens a subdirectory. It fails for a link.
func (d Dir) Enter(name string) (Dir, error) {
	fd, err := d.open(name, unix.O_DIRECTORY)
	if err != nil {
		return Dir{}, err
	}
	return Dir{handle{fd, os.NewFile(uintptr(fd), name)}}, nil
}

// open opens a name for reading. It follows no link and does not wait for a pipe.
func (d Dir) open(name string, how int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(d.fd, name, how|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// Close closes the directory.
func (d Dir) Close() { d.file.Close() } // nothing is written through it, so the error does not matter

// Entries iterates over the names in the directory, in no particular order. Call it once.
func (d Dir) Entries() iter.Seq2[os.DirEntry, error] { return inParts(d.file) }

// Stat returns the facts of a name in the directory. It does not follow a link.
func (d Dir) Stat(name string) (Facts, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return Facts{}, err
	}
	return factsOf(&st), nil
}

// Self returns the facts of the directory itself. It looks up ".", which fails where every lookup
// in the directory would fail.
func (d Dir) Self() (Facts, error) { return d.Stat(".") }

// Link returns the target of a symbolic link.
func (d Dir) Link(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(d.fd, name, buf)
	return string(buf[:max(n, 0)]), err
}

// openFile opens a file for reading without following a link or waiting for a pipe.
func (d Dir) openFile(name string) (*os.File, error) {
	fd, err := d.open(name, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// again repeats a system call that a signal has interrupted.
func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// Identity distinguishes a file from all others that exist at the same time.
type Identity struct{ dev, ino uint64 }

// Same reports whether two identities belong to the same file.
func (i Identity) Same(o Identity) bool { return i == o }

// factsOf converts the result of stat. Anything but a file, directory or link is irregular.
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

// FactsOf returns the facts of an open file.
func FactsOf(f *os.File) (Facts, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return Facts{}, err
	}
	return factsOf(&st), nil
}

// IdentityOf returns the identity of a file.
func IdentityOf(fi os.FileInfo) Identity {
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}
	}
	return Identity{uint64(s.Dev), s.Ino}
}

// path returns the current path of the directory if the system reports it, else otherwise.
func (d Dir) path(otherwise string) string { return pathOf(d.file, otherwise) }
