package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A home directory may have thousands of entries, and each one beside a hidden path needs a rule. So an entry costs three system calls here,
// and is compared with no list.

// allowBeside allows to read and execute a directory, except the hidden paths in it, which are relative to it. It follows no links:
// the target of a link has a rule of its own. Directories that this user cannot list stay closed.
func allowBeside(rules int, dir string, hidden []string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil
	}
	opened := os.NewFile(uintptr(fd), dir)
	defer opened.Close()
	entries, err := opened.ReadDir(-1)
	if err != nil {
		return nil
	}
	below := byFirst(hidden)
	for _, e := range entries {
		inside, some := below[e.Name()]
		switch {
		case e.Type() == fs.ModeSymlink, some && inside == nil:
			continue
		case some:
			err = allowBeside(rules, filepath.Join(dir, e.Name()), inside)
		default:
			err = allowEntry(rules, fd, e.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// relative returns absolute paths relative to the root.
func relative(paths []string) (all []string) {
	for _, path := range paths {
		all = append(all, strings.TrimPrefix(path, "/"))
	}
	return all
}

// byFirst groups relative paths by their first element, with the rest of each. The rest is nil if the element itself is among the paths.
func byFirst(paths []string) map[string][]string {
	all := map[string][]string{}
	for _, path := range paths {
		first, rest, deeper := strings.Cut(path, "/")
		if before, some := all[first]; !deeper {
			all[first] = nil
		} else if !some || before != nil {
			all[first] = append(before, rest)
		}
	}
	return all
}

// allowEntry allows to read and execute an entry of an open directory. An entry that is gone or cannot be opened stays closed.
func allowEntry(rules, dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: readFile, Parent_fd: int32(fd)}
	_, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 && !errors.Is(errno, unix.EBADFD) { // an internal file of the kernel
		return &fs.PathError{Op: "sandbox", Path: name, Err: errno}
	}
	return nil
}
