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
	err := json.NewDecoder(orders).Decode(&o)
	if err == nil {
		err = o.carryOut()
	}
	_ = json.NewEncoder(refusals).Encode(refusalOf(err)) // a parent that reads no refusal still sees the exit status
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

// carryOut confines the process and executes the target program. Mounts come first, because they need a
// privilege that the sandbox drops. It returns only on an error, which names the failed system call.
func (o *order) carryOut() error {
	processes, err := o.Limits.processes()
	if err != nil {
		return err
	}
	if o.Sandbox != nil {
		if err := o.Sandbox.arrange(); err != nil {
			return err
		}
		if err := o.Sandbox.enter(o.ABI); err != nil {
			return err
		}
	}
	// The memory limit comes last: this program itself may already use more.
	for _, l := range []struct {
		resource int
		most     int64
		is       bool
	}{
		{unix.RLIMIT_CORE, 0, true},
		{unix.RLIMIT_FSIZE, o.Limits.FileSize, o.Limits.FileSize > 0},
		{unix.RLIMIT_NOFILE, o.Limits.OpenFiles, o.Limits.OpenFiles > 0},
		{unix.RLIMIT_NPROC, processes, processes > 0},
		{unix.RLIMIT_AS, o.Limits.Memory, o.Limits.Memory > 0},
	} {
		if !l.is {
			continue
		}
		if err := limit(l.resource, uint64(l.most)); err != nil {
			return err
		}
	}
	// The program gets its streams and nothing else, whatever this process inherited.
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) {
		return os.NewSyscallError("close_range", err)
	}
	if o.Path == passedProgram {
		unix.CloseOnExec(5)
	}
	return &fs.PathError{Op: "exec", Path: o.Path, Err: syscall.Exec(o.Path, o.Argv, o.Env)}
}

// limit lowers a resource limit. It never raises one.
func limit(resource int, most uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	most = min(most, now.Max)
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}))
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
