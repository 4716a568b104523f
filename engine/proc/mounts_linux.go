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

// Landlock does not protect modes, owners, times and extended attributes of files; a read-only mount does. So a sandboxed
// child gets its own mounts, where the system allows that. All are read-only except those of writable paths.

// isolate starts the child in its own mount namespace; if it is apart, also with its own processes and System V memory; and with a View
// that has no network of the system, with its own network. A user other than root needs a user namespace for that, in which the child keeps the privileges that it needs
// until the gate drops them. Its user and group ids stay the same.
func (c Command) isolate(cmd *exec.Cmd) {
	attr := cmd.SysProcAttr
	attr.Cloneflags |= unix.CLONE_NEWNS
	if c.apart {
		attr.Cloneflags |= unix.CLONE_NEWIPC | unix.CLONE_NEWPID
		attr.Setctty = false // the gate gives the terminal to the program
	}
	if c.Confine.Sandbox.alone() {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if os.Getuid() == 0 {
		return
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
}

// alone reports whether the child has a network of its own, with a loopback device only.
func (s *Sandbox) alone() bool { return s.View != nil && !s.Network }

// arrange sets up the namespaces of the child before it loses the privileges for that. If the gate stays, it fails if the system does not
// allow all of it; otherwise it protects files as far as the system allows.
func (o *order) arrange() error {
	s := o.Sandbox
	if s.View == nil {
		if changed, err := s.readOnly(); err != nil && (changed || o.Stay) {
			return err
		}
		if !o.Stay {
			return nil
		}
		return onlyOwnProcesses()
	}
	if s.alone() {
		if err := startLoopback(); err != nil {
			return err
		}
	}
	return s.mounts(o.Terminal)
}

// refusesNamespaces reports whether a child failed to start because the system does not grant namespaces.
func refusesNamespaces(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EINVAL, unix.EUSERS, unix.ENOSYS}, func(e error) bool { return errors.Is(err, e) })
}

// onlyOwnProcesses gives a child without a View a /proc that shows its own processes, and nothing of the kernel.
func onlyOwnProcesses() error {
	if err := ownProcesses(); err != nil {
		return err
	}
	covers, err := cover(kernelFiles)
	if err != nil {
		return err
	}
	return seal(covers)
}

// readOnly makes every mount read-only except those of writable paths, without their kept files. Where the system does not allow that it returns an error, and
// reports that it changed nothing.
func (s *Sandbox) readOnly() (bool, error) {
	// Otherwise our mounts would propagate to the outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return false, os.NewSyscallError("mount", err)
	}
	writable, err := copies(s.Write)
	defer func() {
		for _, w := range writable {
			unix.Close(w.tree)
		}
	}()
	if err == nil {
		err = setReadOnly(unix.AT_FDCWD, "/", unix.AT_RECURSIVE)
	}
	if err != nil {
		return false, err
	}
	for _, w := range writable {
		if err := attachStraight(w.tree, w.path); err != nil {
			return true, err
		}
	}
	return true, errors.Join(keepAll(s.Keep), enterAgain())
}

// mounted is a path with a detached copy of its mounts, to be mounted over it again.
type mounted struct {
	path string
	tree int // descriptor of the copy
}

// copies copies the mounts of paths, parents before children. Missing paths are left out.
func copies(paths []string) (all []mounted, err error) {
	paths = slices.Clone(paths)
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, path := range paths {
		fd, err := tree(path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, mounted{path, fd})
	}
	return all, nil
}

// enterAgain changes to the working directory again, because the process still holds it on the old mount. The path must
// lead to the same directory; if it was replaced in between, the start fails.
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
