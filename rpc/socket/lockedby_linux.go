package socket

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lockedBy returns the pid of the process that has locked the file or directory at path, from the
// kernel's list of locks. 0: the list has none.
func lockedBy(path string) int {
	var info unix.Stat_t
	if unix.Stat(path, &info) != nil {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(info.Dev), unix.Minor(info.Dev), info.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		var number, kind, mode, access, of string
		var pid int
		_, err := fmt.Sscan(lines.Text(), &number, &kind, &mode, &access, &pid, &of)
		if err == nil && kind == "FLOCK" && strings.EqualFold(of, file) && pid > 0 {
			return pid
		}
	}
	return 0
}
