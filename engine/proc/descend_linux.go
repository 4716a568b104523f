package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// status is what the system tells everybody of a process.
type status struct {
	state   byte
	parent  int
	session int
	start   uint64 // clock ticks since the system started
}

// Fields of proc_pid_stat(5), counted from the one after the name.
const (
	statState   = 0
	statParent  = 4 - 3
	statSession = 6 - 3
	statStart   = 22 - 3
)

var errStat = errors.New("/proc: a stat file of an unknown form")

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

// everything is the status of each process that can be seen.
func everything() (map[int]status, error) {
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
		if s, err := statusOf(pid); err == nil { // else it is gone
			all[pid] = s
		}
	}
	return all, nil
}

// descendants are those of a process, in no order.
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

// killDescendants kills all that descends from a process, as it is now, and returns what it killed.
func killDescendants(root int) (killed []int) {
	all, err := everything()
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

// killSame kills a process if it is still the one that was seen. It takes hold of it first, so that the signal cannot reach a
// later one with the same pid.
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
