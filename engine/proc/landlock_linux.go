package proc

import (
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// system lists the files that programs need and that contain no private data: programs, libraries, name resolution,
// certificates and the time zone. Every sandboxed child may read and execute them. Missing ones are skipped. Symbolic
// links in them are followed.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
	"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies",
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/mime.types", "/etc/os-release",
	"/etc/python3", "/etc/java", "/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/dev/zero", "/dev/random", "/dev/urandom",
}

// devices are the device files that every child may write to.
var devices = []string{"/dev/null", "/dev/full"}

const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readAll  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR

	// ofFiles are the rights that apply to files; the others apply only to directories.
	ofFiles = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	firstRights = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // all rights of ABI 1
)

// rights returns all rights that a version of the interface knows. The ruleset must handle every one of them: a right
// that it does not handle stays allowed.
func rights(abi int) (all uint64) {
	all = firstRights
	for since, right := range map[int]uint64{
		2: unix.LANDLOCK_ACCESS_FS_REFER, 3: unix.LANDLOCK_ACCESS_FS_TRUNCATE, 5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
	} {
		if abi >= since {
			all |= right
		}
	}
	return all
}

// landlockABI returns the version of the kernel's interface, from 1.
func landlockABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(abi), nil
}

// enter confines the thread, and the program that it executes, permanently: first Landlock, then the privileges, then
// the system call filter. apart says that the process is in a process namespace of its own. It must run on the thread that executes the program. On an error the thread may be confined
// in part; do not execute anything then. It returns where calls for the broker arrive; -1: it needs none.
func (s *Sandbox) enter(abi int, apart bool) (listener int, err error) {
	rules, err := s.ruleset(abi)
	if err != nil {
		return -1, err
	}
	defer unix.Close(rules)
	if err := s.fill(rules, rights(abi)); err != nil {
		return -1, err
	}
	if s.View != nil {
		if err := s.View.allow(rules, rights(abi)); err != nil {
			return -1, err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, os.NewSyscallError("prctl", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return -1, os.NewSyscallError("landlock_restrict_self", errno)
	}
	if err := dropPrivileges(); err != nil {
		return -1, err
	}
	return s.filter(apart).install()
}

// ruleset creates an empty ruleset: everything that it handles is denied. Network rules need ABI 4, and scopes of
// signals and abstract sockets ABI 6; the system call filter covers sockets on older kernels. A network of its own needs no
// rules. The caller closes the descriptor.
func (s *Sandbox) ruleset(abi int) (int, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rights(abi)}
	if abi >= 4 && !s.Network && s.View == nil {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return int(fd), nil
}

// fill allows the paths of the sandbox. Only system paths may contain symbolic links.
func (s *Sandbox) fill(rules int, all uint64) error {
	const follow, straight = 0, unix.RESOLVE_NO_SYMLINKS
	for _, group := range []struct {
		paths  []string
		rights uint64
		how    uint64
	}{
		{system, readAll, follow}, {devices, all & ofFiles, follow}, {s.Read, readAll, straight}, {s.Write, all, straight},
	} {
		for _, path := range group.paths {
			if err := allow(rules, path, group.rights&all, group.how); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	return nil
}

// allow allows rights on a path and on everything below it. resolve says whether the path may contain symbolic links.
// It fails with ENOENT for a missing path.
func allow(rules int, path string, rights, resolve uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return &fs.PathError{Op: "sandbox", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return &fs.PathError{Op: "sandbox", Path: path, Err: err}
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return &fs.PathError{Op: "sandbox", Path: path, Err: errno}
	}
	return nil
}
