package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ancestryTries limits how often a list of ancestors is read again because it changed.
const ancestryTries = 5

// Descends returns why a process counts as started by lashd, for messages; "" if it does not. A process counts if one of its
// ancestors is a child of this process, or carries the nonce or the mark of a detached command. A process that cannot
// be inspected counts too.
//
// A process cannot hide by forking twice, by leaving its session or by clearing its environment, because orphans stay
// below this process. Descends does not detect a process that an unrelated process starts on behalf of a command.
func Descends(pid int, nonce string) (why string) {
	for range ancestryTries {
		line, same := ancestors(pid)
		if !same {
			continue
		}
		return descendsFrom(line, nonce)
	}
	return fmt.Sprintf("the ancestors of process %d cannot be read", pid)
}

// descendsFrom decides by the list of a process and its ancestors.
func descendsFrom(line []int, nonce string) string {
	for _, pid := range line {
		if pid == os.Getpid() {
			return fmt.Sprintf("process %d descends from a command that lashd runs", line[0])
		}
		environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			continue // another user's process, or a hidden one: its ancestors decide
		}
		for _, name := range []string{nonceVariable, detachedVariable} {
			if hasNonce(environ, name, nonce) {
				return fmt.Sprintf("process %d carries the mark of a command that lashd runs", pid)
			}
		}
	}
	return ""
}

// ancestors returns a process, its parent, and so on, as far as they are visible. It reads the list twice and reports
// whether both were the same: if a parent ended in between, another process may have got its pid. A parent is never
// younger than its child.
func ancestors(pid int) (line []int, same bool) {
	line, starts := lineage(pid)
	if len(line) == 0 {
		return nil, false
	}
	again, _ := lineage(pid)
	for i := range line {
		if i >= len(again) || again[i] != line[i] || i > 0 && starts[i] > starts[i-1] {
			return nil, false
		}
	}
	return line, len(again) == len(line)
}

// lineage reads the list once, with start times. It is empty if the process ended.
func lineage(pid int) (line []int, starts []uint64) {
	for pid > 0 && len(line) < 4096 {
		s, err := statusOf(pid)
		if err != nil && len(line) > 0 && errors.Is(unix.Kill(pid, 0), unix.EPERM) {
			break // another user's, hidden by mount options of /proc: no process of ours is above it
		}
		if err != nil {
			return nil, nil
		}
		line, starts = append(line, pid), append(starts, s.start)
		if pid == os.Getpid() {
			break
		}
		pid = s.parent
	}
	return line, starts
}
