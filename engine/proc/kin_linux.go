package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// kinTries is how often a line of ancestors is read that changes meanwhile.
const kinTries = 5

// Kin tells whether a process descends from a child of this process, or may: by its ancestors, or because one of them bears the nonce or that
// of a detached command. Why is for people; it is empty for a process that is not kin. A process that cannot be looked at is kin.
//
// It finds whoever forks twice, leaves the session or clears the environment, since orphans stay in the family. It does not find a process that
// another one, outside of the family, starts on its behalf.
func Kin(pid int, nonce string) (why string) {
	for range kinTries {
		line, same := ancestors(pid)
		if !same {
			continue
		}
		return kin(line, nonce)
	}
	return fmt.Sprintf("the ancestors of process %d cannot be read", pid)
}

// kin is why a line of processes is of the family.
func kin(line []int, nonce string) string {
	for _, pid := range line {
		if pid == os.Getpid() {
			return fmt.Sprintf("process %d descends from a command that lashd runs", line[0])
		}
		environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			continue // another user's, or one that hides it: its ancestors tell
		}
		for _, name := range []string{nonceVariable, detachedVariable} {
			if hasNonce(environ, name, nonce) {
				return fmt.Sprintf("process %d carries the mark of a command that lashd runs", pid)
			}
		}
	}
	return ""
}

// ancestors are a process, its parent, and so on, as far as they can be seen. They are read twice: if a parent ended meanwhile, somebody else
// may have its pid. No parent is younger than its child.
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

func lineage(pid int) (line []int, starts []uint64) {
	for pid > 0 && len(line) < 4096 {
		s, err := statusOf(pid)
		if err != nil && len(line) > 0 && errors.Is(unix.Kill(pid, 0), unix.EPERM) {
			break // another user's, hidden by the options of /proc: nothing of ours is above it
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
