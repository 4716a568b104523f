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

// maxLinks is the maximum number of symbolic links in a path, as in the kernel.
const maxLinks = 40

// makePrivate creates dir and its missing parents with mode 0700, then checks it like checkPrivate.
func makePrivate(dir string) error { return private(dir, true) }

// checkPrivate fails unless dir is a directory of this user that no other user can enter, and that
// no user but root could have replaced.
func checkPrivate(dir string) error { return private(dir, false) }

// private walks along dir, an absolute path, through symbolic links, as the kernel would. It checks
// each directory before it looks into it or creates an entry. Another user must not be able to
// redirect the path in between.
func private(dir string, create bool) error {
	w := walk{at: "/", ahead: steps(dir), create: create}
	for len(w.ahead) > 0 {
		if err := w.step(); err != nil {
			return err
		}
	}
	return checkOwn(w.at)
}

// walk is a position on the way to a directory.
type walk struct {
	// at is the directory reached so far; its path has no links.
	at string
	// ahead holds the names that remain.
	ahead  []string
	create bool
	links  int
}

// steps splits a path into its names.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// step checks the current directory and goes on to the next name, which it creates if necessary.
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

// follow replaces a symbolic link by its target. The last name must not be a link, and a link must
// belong to this user or root.
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

// makeDirectory creates a directory with mode 0700. It accepts one that another process has created
// first; the next step checks it.
func makeDirectory(path string) (fs.FileInfo, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.Lstat(path)
}

// checkParent fails if a user other than root and this one could rename entries of dir. With the
// sticky bit only the owners of the entry and the directory can.
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

// ownPlace is the advice in errors about a directory that other users can access.
const ownPlace = "use a private directory for the socket or the data"

// checkOwn fails unless dir belongs to this user and has no permissions for others. It suggests
// chmod only where that harms no other user.
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
	case info.Mode()&fs.ModeSticky != 0: // a shared directory such as /tmp, which chmod would close for all others
		return fmt.Errorf("other users can access %s (%s); %s", dir, info.Mode(), ownPlace)
	}
	return fmt.Errorf("other users can access %s (%s); run chmod 700 on it if only lashd uses it, or %s", dir, info.Mode(), ownPlace)
}

// owner returns the user id that a file belongs to.
func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// foreign reports whether a user id is neither root nor this user.
func foreign(uid int) bool { return uid != 0 && uid != os.Geteuid() }
