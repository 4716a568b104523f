package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sweepLimit = 2 * time.Second
	sweepPause = 5 * time.Millisecond
)

// Sweep kills everything that descends from the children of this process with the nonce, and the processes of this user that
// inherited it in their environment, and returns their pids. A nonce
// finds those of "nonce/anything" too, so that one call's processes can be swept apart from all of a daemon's. Call it
// when nothing with that nonce should be alive: at the start of a daemon, or after an Exit that is Escaped. It looks again
// until it finds none, since a process may fork while it is being killed, and fails if some do not go within two seconds.
// It waits for supervisors of an earlier process with the nonce, which kill what that one left.
func Sweep(nonce string) ([]int, error) {
	if nonce == "" {
		return nil, errors.New("sweep processes: empty nonce")
	}
	swept := family.end(nonce)
	for deadline := time.Now().Add(sweepLimit); ; time.Sleep(sweepPause) {
		found, unknown, err := killMarked(nonce)
		if err != nil {
			return swept, fmt.Errorf("sweep processes: %w", err)
		}
		for _, pid := range found {
			if !slices.Contains(swept, pid) {
				swept = append(swept, pid)
			}
		}
		if len(found)+len(unknown) == 0 {
			return swept, nil
		}
		if time.Now().After(deadline) {
			return swept, fmt.Errorf("sweep processes: %v will not die, %v cannot be told apart", found, unknown)
		}
	}
}

// inode tells a directory from all others of the system; empty if it cannot be looked at.
func inode(dir string) string {
	var s unix.Stat_t
	if unix.Stat(dir, &s) != nil {
		return ""
	}
	return fmt.Sprintf("-%x-%x", s.Dev, s.Ino)
}

// killMarked sends SIGKILL to every process that bears the nonce, and returns those pids, and those that may bear it.
func killMarked(nonce string) (found, unknown []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		switch killIfMarked(pid, nonce) {
		case bears:
			found = append(found, pid)
		case mayBear:
			unknown = append(unknown, pid)
		}
	}
	return found, unknown, nil
}

// bearing is what is known of a process and a nonce.
type bearing int

const (
	bearsNot bearing = iota
	mayBear
	bears
)

// killIfMarked takes hold of the process before it looks: os.FindProcess opens a pidfd where the kernel has them, so that
// the signal cannot reach a later process with the same pid.
func killIfMarked(pid int, nonce string) bearing {
	process, err := os.FindProcess(pid)
	if err != nil {
		return bearsNot
	}
	defer process.Release()
	b := marked(pid, nonce)
	if b == bears && process.Kill() != nil {
		return bearsNot
	}
	return b
}

// marked tells whether the process is ours and has the nonce. One that is gone or may not be read has not.
func marked(pid int, nonce string) bearing {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	info, err := os.Stat(dir)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return bearsNot
	}
	environ, err := os.ReadFile(filepath.Join(dir, "environ"))
	switch {
	case err != nil:
		return bearsNot
	case len(environ) == 0 && executing(dir), hasNonce(environ, supervisorVariable, nonce):
		return mayBear
	case hasNonce(environ, nonceVariable, nonce):
		return bears
	}
	return bearsNot
}

// hasNonce tells whether a variable of an environment is the nonce, or begins with it and a slash.
func hasNonce(environ []byte, name, nonce string) bool {
	want := []byte(name + "=" + nonce)
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if rest, ok := bytes.CutPrefix(variable, want); ok && (len(rest) == 0 || rest[0] == '/') {
			return true
		}
	}
	return false
}

// variable is what a process was given as a variable; empty: nothing, or it cannot be read.
func variable(pid int, name string) string {
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// Fields of proc_pid_stat(5), counted from the one after the name, which is the state.
const (
	statMemory   = 23 - 3 // bytes of virtual memory: none in a zombie, nor in a thread of the kernel
	statEnvStart = 50 - 3
	statEnvEnd   = 51 - 3
)

// executing reports whether a process whose environment reads as empty has one all the same: while it executes a program, its
// new memory has none yet. One that cleared its environment tells of a place without extent instead.
func executing(dir string) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= statEnvEnd || fields[statMemory] == "0" {
		return false
	}
	return fields[statEnvEnd] == "0" || fields[statEnvEnd] != fields[statEnvStart]
}
