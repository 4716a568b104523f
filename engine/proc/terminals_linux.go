package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	terminalDir   = "/dev/pts"
	terminalMaker = "/dev/ptmx"
)

// ownTerminals gives the child terminals of its own, so that it does not reach those of the user's other programs. With a controlling
// terminal, which comes from outside, the child finds that one among them.
func ownTerminals(controlling bool) error {
	if _, err := os.Stat(terminalDir); err != nil {
		return nil
	}
	given, path := -1, ""
	if controlling {
		if given, path = givenTerminal(); given >= 0 {
			defer unix.Close(given)
		}
	}
	made, err := terminals()
	if err != nil {
		return err
	}
	if err := attach(made, terminalDir); err != nil {
		return err
	}
	var link unix.Stat_t
	if err := unix.Lstat(terminalMaker, &link); err == nil && link.Mode&unix.S_IFMT != unix.S_IFLNK { // a link leads to the new one
		maker, err := tree(terminalDir + "/ptmx")
		if err != nil {
			return err
		}
		if err := attach(maker, terminalMaker); err != nil {
			return err
		}
	}
	if given < 0 {
		return nil
	}
	return showTerminal(given, path)
}

// terminals returns a new file system of terminals.
func terminals() (int, error) {
	fd, err := unix.Fsopen("devpts", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.FsconfigSetString(fd, "ptmxmode", "666"), unix.FsconfigSetString(fd, "mode", "620"), unix.FsconfigCreate(fd)); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	made, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	return made, os.NewSyscallError("fsmount", err)
}

// givenTerminal returns a detached mount of the terminal that this process has as its input, with its path; -1 if it is not where its name
// says.
func givenTerminal() (fd int, path string) {
	var input, named unix.Stat_t
	path, err := os.Readlink("/proc/self/fd/0")
	if err != nil || !strings.HasPrefix(path, terminalDir+"/") {
		return -1, ""
	}
	if fd, err = tree(path); err != nil {
		return -1, ""
	}
	if unix.Fstat(0, &input) != nil || unix.Fstat(fd, &named) != nil || input.Dev != named.Dev || input.Ino != named.Ino {
		unix.Close(fd)
		return -1, ""
	}
	return fd, path
}

// mostTerminals limits how many terminals showTerminal makes.
const mostTerminals = 512

// showTerminal mounts a terminal over one of the child's own that has the same path, and stays unused. Programs find the name of a terminal
// by its path. The maker stays open in this process, because the name exists only so long.
func showTerminal(given int, path string) error {
	var before []int
	defer func() {
		for _, maker := range before {
			unix.Close(maker)
		}
	}()
	for range mostTerminals { // the kernel gives the lowest free number
		maker, err := unix.Open(terminalDir+"/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("open", err)
		}
		number, err := unix.IoctlGetInt(maker, unix.TIOCGPTN)
		if err != nil {
			return os.NewSyscallError("ioctl", err)
		}
		if fmt.Sprintf("%s/%d", terminalDir, number) == path {
			return os.NewSyscallError("move_mount", unix.MoveMount(given, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH))
		}
		before = append(before, maker)
	}
	return nil // the terminal works without a name, too
}
