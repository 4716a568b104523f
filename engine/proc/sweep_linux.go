package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	sweepLimit = 2 * time.Second
	sweepPause = 5 * time.Millisecond
)

// Sweep kills the processes of this user that were started with the nonce, or inherited it, and returns their pids. A nonce
// finds those of "nonce/anything" too, so that one call's processes can be swept apart from all of a daemon's. Call it
// when nothing with that nonce should be alive: at the start of a daemon, or after an Exit that is Escaped. It looks again
// until it finds none, since a process may fork while it is being killed, and fails if some do not go within two seconds.
// A process that cleared its environment is not found.
func Sweep(nonce string) ([]int, error) {
	if nonce == "" {
		return nil, errors.New("sweep processes: empty nonce")
	}
	var swept []int
	for deadline := time.Now().Add(sweepLimit); ; time.Sleep(sweepPause) {
		found, err := killMarked(nonce)
		if err != nil {
			return swept, fmt.Errorf("sweep processes: %w", err)
		}
		for _, pid := range found {
			if !slices.Contains(swept, pid) {
				swept = append(swept, pid)
			}
		}
		if len(found) == 0 {
			return swept, nil
		}
		if time.Now().After(deadline) {
			return swept, fmt.Errorf("sweep processes: %v will not die", found)
		}
	}
}

// killMarked sends SIGKILL to every process that bears the nonce, and returns those pids.
func killMarked(nonce string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if killIfMarked(pid, nonce) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// killIfMarked takes hold of the process before it looks: os.FindProcess opens a pidfd where the kernel has them, so that
// the signal cannot reach a later process with the same pid.
func killIfMarked(pid int, nonce string) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer process.Release()
	return marked(pid, nonce) && process.Kill() == nil
}

// marked reports whether the process is ours and has the nonce. One that is gone or may not be read is neither.
func marked(pid int, nonce string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	info, err := os.Stat(dir)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return false
	}
	environ, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false
	}
	want := []byte(nonceVariable + "=" + nonce)
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if rest, ok := bytes.CutPrefix(variable, want); ok && (len(rest) == 0 || rest[0] == '/') {
			return true
		}
	}
	return false
}
