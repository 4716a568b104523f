package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// status is the public state of a process, from proc_pid_stat(5).
type status struct {
	state   byte // 'Z': a zombie
	parent  int
	session int
	start   uint64 // clock ticks since boot; together with the pid it identifies a process
}

// Fields of proc_pid_stat(5), counted from the one after the name.
const (
	statState   = 0
	statParent  = 4 - 3
	statSession = 6 - 3
	statStart   = 22 - 3
)

var errStat = errors.New("/proc: unexpected format of a stat file")

// statusOf reads the status of a process. The name in the file may contain anything, so fields are counted from its
// last parenthesis.
func statusOf(pid int) (status, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return status{}, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) <= statStart {
		return status{}, errStat
	}
	s := status{state: fields[statState][0]}
	var errs [3]error
	s.parent, errs[0] = strconv.Atoi(fields[statParent])
	s.session, errs[1] = strconv.Atoi(fields[statSession])
	s.start, errs[2] = strconv.ParseUint(fields[statStart], 10, 64)
	return s, errors.Join(errs[:]...)
}

// allProcesses returns the status of all visible processes by pid. It is not a consistent snapshot: processes start and
// end while it reads.
func allProcesses() (map[int]status, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := make(map[int]status, len(entries))
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := statusOf(pid); err == nil { // otherwise it has ended
			all[pid] = s
		}
	}
	return all, nil
}

// descendants returns all descendants of a process, in no particular order.
func descendants(all map[int]status, root int) (found []int) {
	children := map[int][]int{}
	for pid, s := range all {
		children[s.parent] = append(children[s.parent], pid)
	}
	for ahead := children[root]; len(ahead) > 0; {
		pid := ahead[0]
		found, ahead = append(found, pid), append(ahead[1:], children[pid]...)
	}
	return found
}

// killDescendants kills the current descendants of a process and returns the pids that it killed, without zombies. Call
// it again until it returns none: processes may fork while it runs.
func killDescendants(root int) (killed []int) {
	all, err := allProcesses()
	if err != nil {
		return nil
	}
	for _, pid := range descendants(all, root) {
		if all[pid].state != 'Z' && killSame(pid, all[pid]) {
			killed = append(killed, pid)
		}
	}
	return killed
}

// killSame kills a process if it is still the one that was seen. It opens the process first, so that the signal cannot
// reach a later process with the same pid.
func killSame(pid int, seen status) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer process.Release()
	if now, err := statusOf(pid); err != nil || now.start != seen.start {
		return false
	}
	return process.Kill() == nil
}
