package proc

import (
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// system is what programs need to run at all, of which nothing is anybody's own: programs and libraries, how names and
// certificates are found, the time zone. What is not there is left out.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
	"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies",
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/mime.types", "/etc/os-release",
	"/etc/python3", "/etc/java", "/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/dev/zero", "/dev/random", "/dev/urandom",
}

// devices are what programs write to besides.
var devices = []string{"/dev/null", "/dev/full"}

const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readAll  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR

	// ofFiles are the rights that a file can have; all others are of directories.
	ofFiles = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	firstRights = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // those of ABI 1
)

// rights are those that a version of the interface knows.
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

// landlockABI is the version of the kernel's interface, from 1 on.
func landlockABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(abi), nil
}

// enter confines the thread, and what it becomes, for ever.
func (s *Sandbox) enter(abi int) error {
	rules, err := s.ruleset(abi)
	if err != nil {
		return err
	}
	defer unix.Close(rules)
	if err := s.fill(rules, rights(abi)); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	return filterSockets(s.Network)
}

func (s *Sandbox) ruleset(abi int) (int, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rights(abi)}
	if abi >= 4 && !s.Network {
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

// allow adds the rights on a path, and on all beneath it.
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
