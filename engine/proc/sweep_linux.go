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
	// Sweep gives up after sweepLimit and looks again every sweepPause.
	sweepLimit = 2 * time.Second
	sweepPause = 5 * time.Millisecond
)

// Sweep kills all descendants of this process's children with the nonce, and all processes of this user with the nonce
// in their environment. It returns their pids. A nonce also matches "nonce/anything", so the processes of one call can
// be swept apart from those of the whole daemon.
//
// Call it when nothing with the nonce should be alive: at the start of a daemon, or after an Exit with Escaped. It
// repeats until it finds no more, because processes may fork while they are killed, and fails if some survive for two
// seconds. It also waits for supervisors with the nonce that an earlier process left, while they clean up.
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
			return swept, fmt.Errorf("sweep processes: %v survived SIGKILL, %v may carry the mark", found, unknown)
		}
	}
}

// inode identifies a directory on this system; "" if it cannot be inspected.
func inode(dir string) string {
	var s unix.Stat_t
	if unix.Stat(dir, &s) != nil {
		return ""
	}
	return fmt.Sprintf("-%x-%x", s.Dev, s.Ino)
}

// killMarked kills every process that has the nonce. It returns their pids in found. unknown are processes that may
// have it: they are just executing a program, or are supervisors that are still cleaning up.
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
		case markYes:
			found = append(found, pid)
		case markMaybe:
			unknown = append(unknown, pid)
		}
	}
	return found, unknown, nil
}

// markMatch says whether a process has a nonce.
type markMatch int

const (
	markNo markMatch = iota
	markMaybe
	markYes
)

// killIfMarked kills a process that has the nonce. It opens the process before it reads the environment: os.FindProcess
// uses a pidfd where available, so the signal cannot reach a later process with the same pid.
func killIfMarked(pid int, nonce string) markMatch {
	process, err := os.FindProcess(pid)
	if err != nil {
		return markNo
	}
	defer process.Release()
	b := marked(pid, nonce)
	if b == markYes && process.Kill() != nil {
		return markNo
	}
	return b
}

// marked checks the environment of a process. Processes of other users, and those that have ended or cannot be read,
// count as unmarked. Only the initial environment counts: a process cannot remove its mark by changing variables.
func marked(pid int, nonce string) markMatch {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	info, err := os.Stat(dir)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return markNo
	}
	environ, err := os.ReadFile(filepath.Join(dir, "environ"))
	switch {
	case err != nil:
		return markNo
	case len(environ) == 0 && executing(dir), hasNonce(environ, supervisorVariable, nonce):
		return markMaybe
	case hasNonce(environ, nonceVariable, nonce):
		return markYes
	}
	return markNo
}

// hasNonce reports whether a variable of an environment equals the nonce, or starts with it and a slash.
func hasNonce(environ []byte, name, nonce string) bool {
	want := []byte(name + "=" + nonce)
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if rest, ok := bytes.CutPrefix(variable, want); ok && (len(rest) == 0 || rest[0] == '/') {
			return true
		}
	}
	return false
}

// variable returns an environment variable of a process; "" if it is not set or cannot be read.
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
	statMemory   = 23 - 3 // bytes of virtual memory: 0 for zombies and kernel threads
	statEnvStart = 50 - 3
	statEnvEnd   = 51 - 3
)

// executing reports whether a process whose environment reads as empty is just executing a program: its new memory has
// no environment yet. A process that has cleared its environment shows an empty range instead.
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
