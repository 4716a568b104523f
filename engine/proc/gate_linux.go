package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// gateName is argv[0] of this program when it runs as a confined child.
const gateName = "lashd: confined child"

// Go cannot set limits between fork and exec, and limits set after the start come too late. So the child runs this
// program first, which confines itself and then executes the target program. An init function does that, so that no
// main can forget it and before slower initialization.
func init() {
	if len(os.Args) == 1 && os.Args[0] == gateName {
		throughGate(os.NewFile(3, "order"), os.NewFile(4, "refusal"))
	}
}

// throughGate never returns. It runs on the initial thread, like all init functions. Settings of this thread apply to
// the program that it executes.
func throughGate(orders, refusals *os.File) {
	unix.CloseOnExec(int(orders.Fd()))
	unix.CloseOnExec(int(refusals.Fd()))
	var o order
	replies := json.NewEncoder(refusals)
	err := json.NewDecoder(orders).Decode(&o)
	if err == nil {
		err = o.carryOut(replies)
	}
	_ = replies.Encode(reply{Refusal: refusalOf(err)}) // a parent that reads no refusal still sees the exit status
	os.Exit(126)
}

// refusalOf converts an error so that it can be sent.
func refusalOf(err error) *refusal {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		if errno, ok := errors.AsType[syscall.Errno](e.Err); ok {
			return &refusal{Op: e.Op, Path: e.Path, Errno: errno}
		}
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		if errno, ok := errors.AsType[syscall.Errno](e.Err); ok {
			return &refusal{Op: e.Syscall, Errno: errno}
		}
	}
	return &refusal{Op: "gate", Text: err.Error()}
}

// carryOut confines the process and executes the target program, or starts it if the gate stays. It returns only on an error, which
// names the failed system call.
func (o *order) carryOut(replies *json.Encoder) error {
	if o.Stay {
		return o.stay(replies)
	}
	if _, err := o.confine(); err != nil {
		return err
	}
	return &fs.PathError{Op: "exec", Path: o.Path, Err: syscall.Exec(o.Path, o.Argv, o.Env)}
}

// confine confines this thread. Mounts come first, because they need a privilege that the sandbox drops. Files other than the streams are
// closed when a program is executed. It returns where calls for the broker arrive; -1: it needs none.
func (o *order) confine() (listener int, err error) {
	listener = -1
	processes, err := o.Limits.processes()
	if err != nil {
		return -1, err
	}
	if o.Stay && processes > 0 {
		processes += ownThreads
	}
	if o.Sandbox != nil {
		if o.Stay {
			limitProcesses(o.Limits.Processes)
		}
		if err := o.arrange(); err != nil {
			return -1, err
		}
		if o.Listen > 0 {
			if err := sendListener(o.Listen); err != nil {
				return -1, err
			}
		}
		if listener, err = o.Sandbox.enter(o.ABI, o.Stay); err != nil {
			return -1, err
		}
	}
	// The memory limit comes last: this program itself may already use more. A gate that stays gives it to the program.
	for _, l := range []struct {
		resource int
		most     int64
		is       bool
	}{
		{unix.RLIMIT_CORE, 0, true},
		{unix.RLIMIT_FSIZE, o.Limits.FileSize, o.Limits.FileSize > 0},
		{unix.RLIMIT_NOFILE, o.Limits.OpenFiles, o.Limits.OpenFiles > 0},
		{unix.RLIMIT_NPROC, processes, processes > 0},
		{unix.RLIMIT_AS, o.Limits.Memory, o.Limits.Memory > 0 && !o.Stay},
	} {
		if !l.is {
			continue
		}
		if err := limit(0, l.resource, uint64(l.most)); err != nil {
			return -1, err
		}
	}
	// The program gets its streams and nothing else, whatever this process inherited.
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) {
		return -1, os.NewSyscallError("close_range", err)
	}
	if o.Path == passedProgram {
		unix.CloseOnExec(5)
	}
	return listener, nil
}

// limit lowers a resource limit of a process; 0: this one. It never raises one.
func limit(pid, resource int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
		return os.NewSyscallError("prlimit", err)
	}
	most = min(most, now.Max)
	return os.NewSyscallError("prlimit", unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil))
}

// processes converts Limits.Processes to a limit on all processes of the user, by adding those that run now; 0:
// unlimited. In a user namespace of its own the child's limit is used as it is.
func (l Limits) processes() (int64, error) {
	if l.Processes == 0 || hasOwnUsers() {
		return l.Processes, nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	most := l.Processes
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			most += threads(pid)
		}
	}
	return most, nil
}

// hasOwnUsers reports whether this process is in a user namespace that isolate created. There the kernel counts only
// processes of the namespace.
func hasOwnUsers() bool {
	var there, outside, size int
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	n, _ := fmt.Sscan(string(text), &there, &outside, &size) // fewer than three values: not a map of ours
	return n == 3 && size == 1
}

// threads returns the number of threads of a process of this user; 0 for other users and ended processes.
func threads(pid int) int64 {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	var n int64
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch fields := strings.Fields(value); {
		case name == "Uid" && fields[0] != strconv.Itoa(os.Getuid()):
			return 0
		case name == "Threads":
			n, _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return n
}
