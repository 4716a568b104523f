package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where a View gives the child something of its own.
const (
	tempDir   = "/tmp"
	sharedDir = "/dev/shm"

	processDir = "/proc"
)

// viewDevices are the devices that a child with a View may use, besides its own terminals in /dev/pts.
var viewDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", terminalMaker, terminalDir}

// apart lists directories that a View does not open as a whole.
var apart = []string{"/dev", tempDir}

// mounts arranges the mounts of a child with a View: everything is read-only, except a /tmp and a /dev/shm of its own and the writable
// paths. Inside these, kept paths are read-only; hidden paths are covered. The order matters: paths in /tmp and in hidden directories
// stay reachable, because they are mounted after what covers them. terminal says that the child's input is its controlling terminal.
func (s *Sandbox) mounts(terminal bool) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	temp, err := unix.OpenTree(unix.AT_FDCWD, s.View.Temp, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE) // only lashd changes the path to it
	if err != nil {
		return &fs.PathError{Op: "open_tree", Path: s.View.Temp, Err: err}
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
	if err := ownProcesses(); err != nil {
		return err
	}
	if err := ownMemory(); err != nil {
		return err
	}
	if err := ownTerminals(terminal); err != nil {
		return err
	}
	covers, err := cover(append(slices.Clone(kernelFiles), s.View.Hide...))
	if err != nil {
		return err
	}
	for _, w := range append(shown, writable...) {
		if err := mountPoint(w); err != nil {
			return err
		}
		if err := attachStraight(w.tree, w.path); err != nil {
			return err
		}
		unix.Close(w.tree)
	}
	if err := keepAll(s.Keep); err != nil {
		return err
	}
	if err := seal(covers); err != nil {
		return err
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

// tree returns a detached copy of the mounts at a path without links.
func tree(path string) (int, error) {
	at, err := straight(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, &fs.PathError{Op: "open_tree", Path: path, Err: err}
	}
	return fd, nil
}

// straight opens a path only to name it. It fails if a part of the path is a link: another command may have put it there while this one
// starts.
func straight(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// attachStraight is attach for a path without links. It does not close the descriptor.
func attachStraight(tree int, path string) error {
	at, err := straight(path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "move_mount", Path: path, Err: err}
	}
	return nil
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

// keepAll keeps all paths.
func keepAll(paths []string) error {
	for _, path := range paths {
		if err := keep(path); err != nil {
			return err
		}
	}
	return nil
}

// keep mounts a path over itself, read-only. So it can be neither changed nor moved away.
func keep(path string) error {
	fd, err := tree(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := setReadOnly(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
		return err
	}
	return attachStraight(fd, path)
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

// ownProcesses gives the child a /proc that shows its own processes only.
func ownProcesses() error {
	fd, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fd)
	if err := unix.FsconfigCreate(fd); err != nil {
		return fmt.Errorf("mount %s: %w", processDir, err)
	}
	made, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("mount %s: %w", processDir, err)
	}
	return attach(made, processDir)
}

// kernelFiles are files of /proc about the memory, keys and processes of the whole system, and settings of its hardware. They are not for
// programs, and some of them are open to root even without privileges.
var kernelFiles = []string{
	"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/sysrq-trigger",
	"/proc/sched_debug", "/proc/timer_list", "/proc/latency_stats", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/acpi", "/proc/scsi",
}

// cover mounts empty directories and files over paths, as far as they exist, and returns the directories. They are still writable, for mount points in
// them. All are in one file system in memory.
func cover(paths []string) (dirs []string, err error) {
	made, err := memory("700")
	if err != nil {
		return nil, err
	}
	defer unix.Close(made)
	if err := unix.Mknodat(made, emptyFile, unix.S_IFREG, 0); err != nil {
		return nil, &fs.PathError{Op: "mknod", Path: emptyFile, Err: err}
	}
	for _, path := range paths {
		var info unix.Stat_t
		switch err := unix.Lstat(path, &info); {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "hide", Path: path, Err: err}
		}
		name := emptyFile
		if info.Mode&unix.S_IFMT == unix.S_IFDIR {
			dirs = append(dirs, path)
			name = fmt.Sprint(len(dirs))
			err = unix.Mkdirat(made, name, 0o700)
		}
		if err == nil {
			err = coverWith(made, name, path)
		}
		if err != nil {
			return nil, &fs.PathError{Op: "hide", Path: path, Err: err}
		}
	}
	return dirs, nil
}

// seal makes the directories of cover read-only.
func seal(covers []string) error {
	for _, path := range covers {
		if err := setReadOnly(unix.AT_FDCWD, path, 0); err != nil {
			return err
		}
	}
	return nil
}

// emptyFile is the name of the file that is mounted over hidden files.
const emptyFile = "empty"

// coverWith mounts an entry of the file system made over a path.
func coverWith(made int, name, path string) error {
	copied, err := unix.OpenTree(made, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
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
	return allowBeside(rules, "/", relative(append(slices.Clone(apart), v.Hide...)))
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
