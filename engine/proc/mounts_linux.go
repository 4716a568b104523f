package proc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Landlock does not guard modes, owners, times and extended attributes of files. A mount that is read-only does. So a sandboxed child
// gets mounts of its own, where the system allows that: all are read-only but those of what it may write.

// isolate has the child begin with mounts of its own. A user who is not root needs a user namespace for that, in which the child has
// the one privilege that it needs until the gate has dropped it.
func isolate(cmd *exec.Cmd) {
	attr := cmd.SysProcAttr
	attr.Cloneflags |= unix.CLONE_NEWNS
	if os.Getuid() == 0 {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
}

// refusesNamespaces reports whether a child did not start because the system gives it no namespaces.
func refusesNamespaces(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EINVAL, unix.EUSERS, unix.ENOSYS}, func(e error) bool { return errors.Is(err, e) })
}

// readOnly makes every mount read-only but those of the paths that may be written. It reports false, and changes nothing, where the
// system does not allow it.
func (s *Sandbox) readOnly() (bool, error) {
	// Without this, what is mounted here would appear outside, too.
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") != nil {
		return false, nil
	}
	writable, err := s.writable()
	defer func() {
		for _, w := range writable {
			unix.Close(w.tree)
		}
	}()
	if err != nil {
		return false, nil
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, readOnly) != nil {
		return false, nil
	}
	for _, w := range writable {
		if err := unix.MoveMount(w.tree, "", unix.AT_FDCWD, w.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return true, fmt.Errorf("mount %s: %w", w.path, err)
		}
	}
	return true, enterAgain()
}

// writablePath is a path with a copy of its mounts, which can be put back over it.
type writablePath struct {
	path string
	tree int
}

// writable copies the mounts of all paths that may be written, those above before those below. A path that is missing is left out.
func (s *Sandbox) writable() (all []writablePath, err error) {
	paths := slices.Clone(s.Write)
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, path := range paths {
		tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, writablePath{path, tree})
	}
	return all, nil
}

// enterAgain goes to the working directory once more: it is still on the mount that is read-only now. The directory at its path must be
// the same one.
func enterAgain() error {
	var before, after unix.Stat_t
	dir, err := os.Getwd()
	if err == nil {
		err = unix.Stat(".", &before)
	}
	if err == nil {
		err = os.Chdir(dir)
	}
	if err == nil {
		err = unix.Stat(".", &after)
	}
	if err == nil && (before.Dev != after.Dev || before.Ino != after.Ino) {
		err = fmt.Errorf("the working directory %s was moved while a program was started in it", dir)
	}
	return err
}
