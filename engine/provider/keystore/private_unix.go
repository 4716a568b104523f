//go:build unix

package keystore

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate returns an error if others can know what is in a file: it belongs to another user, other users can read it, or it has
// another name, which may lie where programs of sessions read it.
func checkPrivate(path string, info fs.FileInfo) error {
	is := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case int(is.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to you (user %d); remove it, and store its keys again", path, is.Uid, os.Geteuid())
	case mode&0o077 != 0:
		return fmt.Errorf("%s has mode %#o and may be read by other users; run chmod 600 on it, and replace its keys if others use this machine", path, mode)
	case is.Nlink > 1:
		return fmt.Errorf("%s has %d names (hard links), so its keys can be read elsewhere; remove the other names, which find -samefile lists, and replace its keys", path, is.Nlink)
	}
	return nil
}
