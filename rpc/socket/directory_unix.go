//go:build unix

package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const maxLinks = 40

// makePrivate creates dir with those of its parents that are missing, then checks it like checkPrivate.
func makePrivate(dir string) error { return private(dir, true) }

// checkPrivate fails unless dir is a directory of ours that nobody else can enter, and that nobody but root could have put
// in place of another.
func checkPrivate(dir string) error { return private(dir, false) }

// private walks to dir, an absolute path, as the kernel would, through the symbolic links on the way. Each step is checked
// before the next is looked at or made.
func private(dir string, create bool) error {
	w := walk{at: "/", ahead: steps(dir), create: create}
	for len(w.ahead) > 0 {
		if err := w.step(); err != nil {
			return err
		}
	}
	return checkOwn(w.at)
}

// walk is a way through the file system: where it is, without links, and what lies ahead.
type walk struct {
	at     string
	ahead  []string
	create bool
	links  int
}

func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func (w *walk) step() error {
	if err := checkParent(w.at); err != nil {
		return err
	}
	next := filepath.Join(w.at, w.ahead[0])
	info, err := os.Lstat(next)
	if w.create && errors.Is(err, fs.ErrNotExist) {
		info, err = makeDirectory(next)
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return w.follow(next, info)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory (%s)", next, info.Mode())
	}
	w.at, w.ahead = next, w.ahead[1:]
	return nil
}

// follow puts the target of the link in front of what lies ahead.
func (w *walk) follow(link string, info fs.FileInfo) error {
	if len(w.ahead) == 1 {
		return fmt.Errorf("%s is a symbolic link; use the path of the directory itself", link)
	}
	if w.links++; w.links > maxLinks {
		return fmt.Errorf("%s: %w", link, syscall.ELOOP)
	}
	if uid := owner(info); foreign(uid) {
		return fmt.Errorf("%s is a symbolic link that belongs to user %d", link, uid)
	}
	target, err := os.Readlink(link)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		w.at = "/"
	}
	w.ahead = append(steps(target), w.ahead[1:]...)
	return nil
}

// makeDirectory is content with a directory that another process has made first.
func makeDirectory(path string) (fs.FileInfo, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.Lstat(path)
}

// checkParent fails if a user other than root and us could rename what is in dir. The sticky bit forbids it to all but the
// owners of the entry and of the directory.
func checkParent(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if uid := owner(info); foreign(uid) {
		return fmt.Errorf("%s belongs to user %d, who could replace its files; choose another directory", dir, uid)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("other users can write to %s (%s); run chmod go-w on it, or choose another directory", dir, info.Mode())
	}
	return nil
}

// ownPlace is what to do about a directory that others use, too.
const ownPlace = "use a private directory for the socket or the data"

func checkOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if uid := owner(info); uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to you (user %d); %s", dir, uid, os.Geteuid(), ownPlace)
	}
	switch {
	case info.Mode().Perm()&0o077 == 0:
		return nil
	case info.Mode()&fs.ModeSticky != 0: // such as /tmp, which nobody else could use any more
		return fmt.Errorf("other users can access %s (%s); %s", dir, info.Mode(), ownPlace)
	}
	return fmt.Errorf("other users can access %s (%s); run chmod 700 on it if only lashd uses it, or %s", dir, info.Mode(), ownPlace)
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func foreign(uid int) bool { return uid != 0 && uid != os.Geteuid() }
