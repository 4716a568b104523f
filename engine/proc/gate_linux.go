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

// gateName is what this program is called when it is started to become another one.
const gateName = "lashd: confined child"

// Between fork and exec Go can set no limits, and whatever is set after the start comes too late for what the child has
// started until then. So the child is this program again, which confines itself and then becomes the other one. That happens
// here, where no main can forget it, and before what takes longer to start.
func init() {
	if len(os.Args) == 1 && os.Args[0] == gateName {
		throughGate(os.NewFile(3, "order"), os.NewFile(4, "refusal"))
	}
}

// throughGate returns never. The thread is the one that it began with, as in all init functions: what is set for a thread
// holds for the program that this thread becomes.
func throughGate(orders, refusals *os.File) {
	unix.CloseOnExec(int(orders.Fd()))
	unix.CloseOnExec(int(refusals.Fd()))
	var o order
	err := json.NewDecoder(orders).Decode(&o)
	if err == nil {
		err = o.carryOut()
	}
	_ = json.NewEncoder(refusals).Encode(refusalOf(err)) // who does not hear it sees the exit
	os.Exit(126)
}

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

// carryOut becomes the program. It returns if that fails.
func (o *order) carryOut() error {
	processes, err := o.Limits.processes()
	if err != nil {
		return err
	}
	if o.Sandbox != nil {
		if _, err := o.Sandbox.readOnly(); err != nil {
			return err
		}
		if err := o.Sandbox.enter(o.ABI); err != nil {
			return err
		}
	}
	// Memory comes last: what this program has taken itself may be more already.
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
	if o.Path == theirProgram {
		unix.CloseOnExec(5)
	}
	return &fs.PathError{Op: "exec", Path: o.Path, Err: syscall.Exec(o.Path, o.Argv, o.Env)}
}

// limit never raises what holds already.
func limit(resource int, most uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	most = min(most, now.Max)
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}))
}

// processes is how many the user may have when the child may have so many; 0: as many as before.
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

// hasOwnUsers reports whether this process is in a user namespace that isolate made: there the kernel counts only what began in it.
func hasOwnUsers() bool {
	var there, outside, size int
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	n, _ := fmt.Sscan(string(text), &there, &outside, &size) // fewer than three are no map of ours
	return n == 3 && size == 1
}

// threads are those of a process of this user. One that is gone has none.
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
