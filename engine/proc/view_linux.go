package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where a View gives the child something of its own.
const (
	tempDir   = "/tmp"
	sharedDir = "/dev/shm"

	terminalDir   = "/dev/pts"
	terminalMaker = "/dev/ptmx"
)

// viewDevices are the devices that a child with a View may use, besides its own terminals in /dev/pts.
var viewDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", terminalMaker, terminalDir}

// apart lists directories that a View does not open as a whole.
var apart = []string{"/dev", tempDir}

// mounts arranges the mounts of a child with a View: everything is read-only, except a /tmp and a /dev/shm of its own and the writable
// paths. Inside these, kept paths are read-only; hidden paths are covered. The order matters: paths in /tmp and in hidden directories
// stay reachable, because they are mounted after what covers them.
func (s *Sandbox) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	temp, err := tree(s.View.Temp)
	if err != nil {
		return err
	}
	shown, err := copies(s.View.Show)
	if err != nil {
		return err
	}
	for _, w := range shown {
		if err := setReadOnly(w.tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
			return err
		}
	}
	writable, err := copies(s.Write)
	if err != nil {
		return err
	}
	if err := setReadOnly(unix.AT_FDCWD, "/", unix.AT_RECURSIVE); err != nil {
		return err
	}
	if err := attach(temp, tempDir); err != nil {
		return err
	}
	if err := ownMemory(); err != nil {
		return err
	}
	if err := ownTerminals(); err != nil {
		return err
	}
	covers, err := s.View.cover()
	if err != nil {
		return err
	}
	for _, w := range append(shown, writable...) {
		if err := mountPoint(w); err != nil {
			return err
		}
		if err := attach(w.tree, w.path); err != nil {
			return err
		}
	}
	for _, path := range s.View.Keep {
		if err := keep(path); err != nil {
			return err
		}
	}
	for _, path := range covers {
		if err := setReadOnly(unix.AT_FDCWD, path, 0); err != nil {
			return err
		}
	}
	return enterAgain()
}

// Views returns nil if a child can have a View, else an error that wraps ErrNoSandbox and says why not. The first call starts
// a program to find out. Call it in the daemon only.
func Views() error {
	views.once.Do(func() { views.err = tryView() })
	return views.err
}

// views holds the answer of Views.
var views struct {
	once sync.Once
	err  error
}

// tryView starts a program with a View.
func tryView() error {
	temp, err := os.MkdirTemp("", "lashd-view-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoSandbox, err)
	}
	defer os.Remove(temp)
	p, err := Start(context.Background(), Command{
		Argv: []string{"/bin/sh", "-c", "exit 0"}, Dir: "/", trial: true, Confine: &Confinement{Sandbox: &Sandbox{View: &View{Temp: temp}}},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoSandbox, err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 {
		return fmt.Errorf("%w: a trial ended with exit code %d: %w", ErrNoSandbox, exit.Code, err)
	}
	return nil
}

// tree returns a detached copy of the mounts at a path.
func tree(path string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, &fs.PathError{Op: "open_tree", Path: path, Err: err}
	}
	return fd, nil
}

// attach mounts a detached tree over a path and closes its descriptor.
func attach(tree int, path string) error {
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "move_mount", Path: path, Err: err}
	}
	return nil
}

// setReadOnly makes a mount read-only. flags may contain AT_RECURSIVE.
func setReadOnly(dir int, path string, flags uint) error {
	if err := unix.MountSetattr(dir, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return &fs.PathError{Op: "mount_setattr", Path: path, Err: err}
	}
	return nil
}

// keep mounts a path over itself, read-only. So it can be neither changed nor moved away.
func keep(path string) error {
	fd, err := tree(path)
	if err != nil {
		return err
	}
	if err := setReadOnly(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
		unix.Close(fd)
		return err
	}
	return attach(fd, path)
}

// ownMemory gives the child a /dev/shm of its own, if the system has one.
func ownMemory() error {
	if _, err := os.Stat(sharedDir); err != nil {
		return nil
	}
	fd, err := memory("1777")
	if err != nil {
		return err
	}
	return attach(fd, sharedDir)
}

// ownTerminals gives the child terminals of its own, so that it does not reach those of the user's other programs.
func ownTerminals() error {
	if _, err := os.Stat(terminalDir); err != nil {
		return nil
	}
	fd, err := unix.Fsopen("devpts", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.FsconfigSetString(fd, "ptmxmode", "666"), unix.FsconfigSetString(fd, "mode", "620"), unix.FsconfigCreate(fd)); err != nil {
		return os.NewSyscallError("fsconfig", err)
	}
	made, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return os.NewSyscallError("fsmount", err)
	}
	if err := attach(made, terminalDir); err != nil {
		return err
	}
	var link unix.Stat_t
	if err := unix.Lstat(terminalMaker, &link); err != nil || link.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil // it leads to the new one
	}
	maker, err := tree(terminalDir + "/ptmx")
	if err != nil {
		return err
	}
	return attach(maker, terminalMaker)
}

// memory returns a new, empty file system in memory whose root has the given mode.
func memory(mode string) (int, error) {
	fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.FsconfigSetString(fd, "mode", mode), unix.FsconfigCreate(fd)); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	made, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	return made, os.NewSyscallError("fsmount", err)
}

// cover mounts empty directories and files over what is hidden, and returns the directories. They are still writable, for mount points in
// them.
func (v *View) cover() (dirs []string, err error) {
	for _, path := range v.Hide {
		var info unix.Stat_t
		switch err := unix.Lstat(path, &info); {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "hide", Path: path, Err: err}
		}
		made, err := memory("700")
		if err != nil {
			return nil, err
		}
		if info.Mode&unix.S_IFMT == unix.S_IFDIR {
			dirs = append(dirs, path)
			err = attach(made, path)
		} else {
			err = coverFile(made, path)
		}
		if err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

// coverFile mounts an empty file of the file system made over a path. It closes made.
func coverFile(made int, path string) error {
	defer unix.Close(made)
	if err := unix.Mknodat(made, "empty", unix.S_IFREG, 0); err != nil {
		return &fs.PathError{Op: "hide", Path: path, Err: err}
	}
	copied, err := unix.OpenTree(made, "empty", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return &fs.PathError{Op: "hide", Path: path, Err: err}
	}
	return attach(copied, path)
}

// mountPoint makes the file or directory over which a path is mounted, if a cover took it away.
func mountPoint(w mounted) error {
	var there unix.Stat_t
	if unix.Lstat(w.path, &there) == nil {
		return nil
	}
	var info unix.Stat_t
	if err := unix.Fstat(w.tree, &info); err != nil {
		return &fs.PathError{Op: "mount", Path: w.path, Err: err}
	}
	if info.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(w.path, 0o700)
	}
	err := os.MkdirAll(filepath.Dir(w.path), 0o700)
	if err == nil {
		err = os.WriteFile(w.path, nil, 0o600)
	}
	return err
}

// allow adds the rules of a View: the names of all directories, all files that are not hidden, and the devices that programs use. A rule
// holds for everything below its path, so directories above a hidden path are opened entry by entry. New files in them stay closed
// while the child runs.
func (v *View) allow(rules int, all uint64) error {
	if err := allow(rules, "/", unix.LANDLOCK_ACCESS_FS_READ_DIR, 0); err != nil {
		return err
	}
	for _, path := range append([]string{tempDir, sharedDir}, viewDevices...) {
		if err := allow(rules, path, all, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	for _, path := range v.Show {
		if err := allow(rules, path, readAll, unix.RESOLVE_NO_SYMLINKS); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return allowBeside(rules, "/", append(slices.Clone(apart), v.Hide...))
}

// allowBeside allows to read and execute a directory, except the hidden paths in it.
func allowBeside(rules int, dir string, hidden []string) error {
	inside := slices.DeleteFunc(slices.Clone(hidden), func(h string) bool { return !strings.HasPrefix(h, strings.TrimSuffix(dir, "/")+"/") })
	if len(inside) == 0 {
		err := allow(rules, dir, readFile, unix.RESOLVE_NO_SYMLINKS)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) { // a link leads to a path that has its own rule
			return nil
		}
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what this user cannot list stays closed
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); !slices.Contains(inside, path) {
			if err := allowBeside(rules, path, inside); err != nil {
				return err
			}
		}
	}
	return nil
}

// startLoopback starts the loopback device of the child's own network.
func startLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	device := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_UP | unix.IFF_RUNNING}
	copy(device.name[:], "lo")
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&device))); errno != 0 {
		return fmt.Errorf("start the loopback device: %w", errno)
	}
	return nil
}
